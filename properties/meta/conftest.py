"""What the tests of the steps share: a nursery, and candidates that are written for one test."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..gpu import Gpu
from ..l1_norm import L1_NORM
from ..limits import Limits
from ..operators import Operator
from ..process import Nursery
from ..runner import Runner
from ..slots import Slots
from ..subject import Subject

MakeRunner = Callable[..., Runner]
MakeSubject = Callable[..., Subject]
#: The body of a right candidate's ``forward(self, x)``.
RIGHT = "return x / x.abs().mean(1, keepdim=True)"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One for all tests of a process: starting it takes seconds."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def make_runner(nursery: Nursery, tmp_path: Path) -> Iterator[MakeRunner]:
    """A runner of a candidate whose ``forward(self, x)`` has the given body."""
    made: list[Runner] = []

    def make(
        forward: str,
        head: str = "",
        call: float = 20.0,
        build: float = 20.0,
        slots: Slots | None = None,
        gpu: Gpu | None = None,
    ) -> Runner:
        path = tmp_path / f"candidate_{len(made)}.py"
        body = textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
        text = f"import torch\n{textwrap.dedent(head)}\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        path.write_text(f"{text}{body}\n", encoding="utf-8")
        limits, device = Limits(60.0, build, call), slots.device if slots else "cpu"
        made.append(Runner(path, (), limits, nursery, tmp_path / "cache", device, slots=slots, gpu=gpu or Gpu()))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


@pytest.fixture
def make_subject(make_runner: MakeRunner) -> Iterator[MakeSubject]:
    """A subject around such a runner, not probed yet."""
    made: list[Subject] = []

    def make(
        forward: str,
        head: str = "",
        required: frozenset[str] = frozenset({"fp32"}),
        operator: Operator = L1_NORM,
        call: float = 20.0,
        slots: Slots | None = None,
        gpu: Gpu | None = None,
    ) -> Subject:
        runner = make_runner(forward, head, call, slots=slots, gpu=gpu)
        target = "cuda" if runner.on_gpu else "cpu"
        made.append(Subject(runner.candidate, target, operator, False, required, runner.limits, runner))
        return made[-1]

    yield make
    for subject in made:
        subject.close()
