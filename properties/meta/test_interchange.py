"""Files as KernelBench has them, unchanged: its problems, generated candidates, their names, their extensions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ci import report as reader
from ci import summary as verify_summary

from .. import contract, inputs, records, summary
from ..cases import parse
from ..limits import Limits
from ..plugin import run_of
from ..process import Nursery
from ..runner import Runner
from ..session import Seat, Session
from ..targets import machine
from .conftest import RIGHT

GIVEN = inputs.build(parse("shape=3x5,seed=1"))
#: A problem of the benchmark, as it comes.
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    \"\"\"
    Simple model that performs L1 normalization.
    \"\"\"
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)

batch_size = 32768
dim = 65535

def get_inputs():
    x = torch.rand(batch_size, dim)
    return [x]

def get_init_inputs():
    return []
"""
#: As generated: an extension by `load_inline`, under a name that others have chosen, too.
GENERATED = """
import torch
from torch.utils.cpp_extension import load_inline

_source = \'\'\'
extern "C" void scale(float* values, long count) { for (long i = 0; i < count; ++i) values[i] *= FACTOR; }
\'\'\'
_built = load_inline(name="l1_norm", cpp_sources=_source, is_python_module=False, no_implicit_headers=True)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        import ctypes
        y = x / x.abs().mean(1, keepdim=True)
        ctypes.CDLL(_built).scale(ctypes.c_void_p(y.data_ptr()), ctypes.c_long(y.numel()))
        return y
"""

Load = Callable[[Path], Runner]


@pytest.fixture
def load(nursery: Nursery, tmp_path: Path) -> Iterator[Load]:
    """A runner of a file, loaded."""
    made: list[Runner] = []

    def loaded(path: Path) -> Runner:
        made.append(Runner(path, (), Limits(60.0, 120.0, 40.0), nursery, tmp_path / "cache"))
        failure = made[-1].load()
        assert failure is None, failure
        return made[-1]

    yield loaded
    for runner in made:
        runner.close()


def factor(runner: Runner) -> float:
    """By what the result is larger than it should be."""
    seen = runner.observe(GIVEN)
    assert seen.output is not None, seen
    return float((seen.output / (GIVEN.logical / GIVEN.logical.abs().mean(1, keepdim=True))).mean())


@pytest.mark.parametrize("name", ["38_L1Norm_.py", "a kernel, 2nd try.py", "38-L1.v2.py", "class.py", "ä.py"])
def test_a_problem_file_of_any_name_is_judged_by_its_model(name: str, load: Load, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(PROBLEM, encoding="utf-8")
    runner = load(path)
    assert runner.taken == "Model"
    assert factor(runner) == pytest.approx(1)


def test_model_new_goes_before_model(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "both.py"
    text = f"{PROBLEM}\nclass ModelNew(Model):\n    def forward(self, x):\n        return 3 * super().forward(x)\n"
    path.write_text(text, encoding="utf-8")
    runner = load(path)
    assert runner.taken == "ModelNew"
    assert factor(runner) == pytest.approx(3)


def test_what_init_takes_comes_from_get_init_inputs(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "takes.py"
    path.write_text(
        "import torch\n\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, factor, dim=0):\n        super().__init__()\n"
        "        self.factor, self.dim = factor, dim\n"
        f"    def forward(self, x):\n        {RIGHT.replace('1,', 'self.dim,')} * self.factor\n\n"
        "def get_init_inputs():\n    return [5.0, 1]\n",
        encoding="utf-8",
    )
    assert factor(load(path)) == pytest.approx(5)


def test_that_model_is_judged_is_told(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = tmp_path / "38_L1Norm_.py"
    path.write_text(PROBLEM, encoding="utf-8")
    session = Session(run_of(request.config).options, machine(), 1)
    try:
        who, what = session.examine(Seat(path, "cpu", shipped=False), contract.HUGE)  # not contact, as with -k
    finally:
        session.close()
    run = run_of(request.config).options
    made = records.assemble(records.Gathered([(who, what)]), run, machine(), 1)
    words = "judged is its class Model: it defines no ModelNew"
    assert f"  {words}\n" in summary.text(made, 100)
    assert f"    {words}" in verify_summary.lines(reader.read(json.dumps(made)), "ci/verify")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_extensions_of_one_name_and_an_edited_file_are_built_each_for_itself(load: Load, tmp_path: Path) -> None:
    first, second = tmp_path / "1 first.py", tmp_path / "2 second.py"
    first.write_text(GENERATED.replace("FACTOR", "2"), encoding="utf-8")
    second.write_text(GENERATED.replace("FACTOR", "3"), encoding="utf-8")
    assert [factor(load(path)) for path in (first, second)] == pytest.approx([2, 3])
    first.write_text(GENERATED.replace("FACTOR", "7"), encoding="utf-8")
    assert factor(load(first)) == pytest.approx(7), "the build of the file as it was"
    assert factor(load(second)) == pytest.approx(3)
