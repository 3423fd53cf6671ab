"""What the tests of the steps share: a nursery, candidates written for one test, gates, kernels' choice, a card."""

from __future__ import annotations

import fcntl
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from .. import verdicts
from ..gate import Gate
from ..gate_options import GateOptions
from ..gpu import Gpu
from ..l1_norm import L1_NORM
from ..limits import Limits
from ..operators import Operator
from ..process import Nursery
from ..runner import Runner
from ..slots import Slots
from ..subject import Subject
from ..targets import machine
from . import choices, gates

MakeRunner = Callable[..., Runner]
MakeSubject = Callable[..., Subject]
#: The body of a right candidate's ``forward(self, x)``.
RIGHT = gates.RIGHT


@pytest.fixture
def alone_on_the_card() -> None:
    """Asked for by tests that take times: no other process runs a test on the card meanwhile."""


@pytest.fixture(autouse=True)
def _on_the_card(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes of one run share the card, except while one of them takes times."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    wanted = fcntl.LOCK_EX if "alone_on_the_card" in request.fixturenames else fcntl.LOCK_SH
    folder = Path(tempfile.gettempdir())
    with (folder / "kernelproof-turn.lock").open("w") as turn, (folder / "kernelproof-card.lock").open("w") as card:
        # Whoever waits to be alone keeps the others from coming after.
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(card, wanted)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


@pytest.fixture(scope="session")
def choose(tmp_path_factory: pytest.TempPathFactory) -> choices.Choose:
    """The choice of a CUDA kernel."""
    return choices.compiled(tmp_path_factory.mktemp("choice"))


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


@pytest.fixture(scope="module")
def timed_nursery() -> Iterator[Nursery]:
    """One whose workers are not disturbed, for what is timed."""
    made = Nursery(perturb=False)
    yield made
    made.close()


@pytest.fixture
def make_gate(timed_nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[gates.MakeGate]:
    """A gate of one tiny case on a CPU, of candidates with these bodies; it ends the gate made before.

    Until a gate ends it keeps others off the machine: two in one test would wait for each other.
    """
    made: list[Gate] = []
    monkeypatch.setattr(verdicts, "ROUNDS", verdicts.LEAST_ROUNDS)  # quicker; what is planted here is coarse

    def make(candidate: str = RIGHT, base: str | None = RIGHT, cases: str = gates.CASES, **changes: object) -> Gate:
        (tmp_path / "cases.toml").write_text(cases, encoding="utf-8")
        against = None if base is None else gates.written(tmp_path, "base", base)
        options = GateOptions(against=against, minimum=gates.COARSE, cases=tmp_path / "cases.toml")
        options = replace(options, **{name: changes.pop(name) for name in list(changes) if hasattr(options, name)})  # type: ignore[arg-type]
        given: dict[str, object] = {"target": "cpu", "machine": machine(), "storage": tmp_path}
        given |= {"cache": tmp_path / "cache", **changes}
        path = gates.written(tmp_path, "candidate", candidate)
        close()
        made.append(Gate(path, options, limits=Limits(), **given))  # type: ignore[arg-type]
        made[-1]._nursery = timed_nursery
        return made[-1]

    def close() -> None:
        for each in made:
            each._nursery = None
            each.close()
        made.clear()

    yield make
    close()
