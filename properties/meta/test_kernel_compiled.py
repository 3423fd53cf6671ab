"""The shipped kernel inside torch.compile: one operator of the graph, which says what it reads and what it returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels import l1_norm as shipped
from kernels.alias import load_module
from kernels.l1_norm import ModelNew, l1_norm

VIEWS = {
    "matrix": torch.linspace(-1, 1, 5 * 301).reshape(5, 301),
    "nd": torch.linspace(-1, 1, 3 * 5 * 7).reshape(3, 5, 7).half(),
    "transposed": torch.linspace(-1, 1, 30).reshape(6, 5).t(),
    "channels_last": torch.linspace(-1, 1, 120).reshape(2, 5, 3, 4).to(memory_format=torch.channels_last),
    "expanded": torch.linspace(-1, 1, 4).reshape(4, 1).expand(4, 9),
    "empty": torch.empty(0, 4),
}


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("name", VIEWS)
def test_it_is_one_graph_without_a_break(name: str) -> None:
    x = VIEWS[name]
    compiled = torch.compile(ModelNew(), backend="aot_eager", fullgraph=True, dynamic=False)
    y = compiled(x)
    assert torch.equal(y, l1_norm(x))
    assert y.stride() == torch.empty_like(x).stride()


def test_sizes_may_be_dynamic() -> None:
    compiled = torch.compile(l1_norm, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows, columns in ((3, 5), (4, 7), (9, 2)):
        x = torch.linspace(-1, 2, rows * columns).reshape(rows, columns)
        assert torch.equal(compiled(x), l1_norm(x))


def test_the_operator_keeps_what_its_schema_promises() -> None:
    for x in (VIEWS["matrix"], VIEWS["transposed"]):
        torch.library.opcheck(shipped._operator, (x,))


def test_what_is_refused_is_refused_when_compiled_too() -> None:
    compiled = torch.compile(l1_norm, backend="aot_eager", fullgraph=True)
    with pytest.raises(TypeError, match=r"does not support torch\.int64"):
        compiled(torch.ones(2, 3, dtype=torch.int64))


@pytest.mark.filterwarnings("ignore:Error detected in")
def test_a_gradient_is_refused_when_compiled_too() -> None:
    compiled = torch.compile(l1_norm, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()


def test_a_copy_of_the_package_runs_its_own_operator() -> None:
    copy = load_module(Path(shipped.__file__).parent, "a_copy_that_is_compiled")
    assert copy._operator._qualname != shipped._operator._qualname
    model: ModelNew = copy.ModelNew()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(VIEWS["matrix"]), l1_norm(VIEWS["matrix"]))


def test_a_plain_call_does_not_wait_for_dynamo() -> None:
    """Its import takes seconds."""
    program = "import sys, torch; from kernels.l1_norm import l1_norm; l1_norm(torch.ones(2, 3))"
    command = [sys.executable, "-c", f"{program}; sys.exit('torch._dynamo' in sys.modules)"]
    assert subprocess.run(command, cwd=Path(shipped.__file__).parent.parent, check=False).returncode == 0
