"""A card that does not come back is said to be gone, once; no verdict comes of it. None of this needs a card."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from .. import contract, engine, inputs
from ..cases import parse
from ..examination import Property
from ..findings import Kind
from ..gpu import Gpu, GpuGoneError
from ..memory import OutOfMemoryError
from ..observation import Death, Outcome
from ..process import WorkerDiedError, WorkerProcess
from ..profiles import Profile
from ..protocol import Message
from ..slots import Slots
from ..targets import machine
from .conftest import RIGHT, MakeRunner, MakeSubject

GIVEN = inputs.build(parse("shape=3x5,seed=1"))
QUICK = Profile("test", examples=5, long_examples=1, longest=1 << 17, shrink_seconds=2, deaths=12)
no_card = pytest.mark.skipif(not machine().no_gpu, reason="there is a card, and it answers")


def pinned() -> Slots:
    """Slots for a card, on the host."""
    return Slots("cuda:0", pinned=True)


def test_what_the_driver_fails_is_the_cards_end_and_anything_else_is_not() -> None:
    gpu = Gpu()
    with pytest.raises(ValueError, match="no"), gpu.watched("x"):
        raise ValueError("no")
    with pytest.raises(RuntimeError, match="shape"), gpu.watched("x"):
        raise RuntimeError("shape mismatch")
    with pytest.raises(OutOfMemoryError), gpu.watched("x"):
        raise RuntimeError("CUDA error: out of memory")
    with pytest.raises(OutOfMemoryError), gpu.watched("x"):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
    gpu.insist()
    with pytest.raises(GpuGoneError, match=r"since k\.py was called"), gpu.watched("k.py was called"):
        raise RuntimeError("CUDA error: unspecified launch failure\nmore")
    with pytest.raises(GpuGoneError, match="unspecified launch failure"):
        gpu.insist()


def test_the_first_time_counts() -> None:
    gpu = Gpu()
    gpu.lost("a.py")
    gpu.lost("b.py")
    assert gpu.gone.endswith("since a.py")


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A card that answers so many fresh processes and no more; calls of a candidate die, for want of a real one."""
    real = WorkerProcess.ask

    def answers(times: int) -> None:
        left = [times]

        def ask(self: WorkerProcess, request: Message, timeout: float, during: str, patience: float = 0.0) -> Message:
            if request["op"] != "reach":
                return real(self, request, timeout, during, patience)
            left[0] -= 1
            if left[0] < 0:
                raise WorkerDiedError(Death("no answer within 60 s", "start"), True)
            return {"outcome": "reached", "byte": 1}

        monkeypatch.setattr(WorkerProcess, "ask", ask)

    return answers


@no_card
def test_a_fresh_process_is_asked_after_a_hang(make_runner: MakeRunner, card: Callable[[int], None]) -> None:
    card(1)
    runner = make_runner(RIGHT, head="import time\ntime.sleep(60)", call=0.3, build=0.3, slots=pinned())
    failure = runner.load()
    assert failure is not None
    assert failure.timed_out
    assert "candidate_0.py was last called (no answer within" in runner.gpu.gone
    assert "of a fresh process: no answer within 60 s" in runner.gpu.gone


@no_card
def test_a_fresh_process_is_asked_after_three_deaths_in_a_row(
    make_runner: MakeRunner, card: Callable[[int], None]
) -> None:
    card(3)
    runner = make_runner(RIGHT, slots=pinned())
    for _ in range(3):
        assert not runner.gpu.gone
        assert runner.observe(GIVEN).outcome is Outcome.DIED
    assert runner.gpu.gone
    with pytest.raises(GpuGoneError):
        runner.observe(GIVEN)


@no_card
def test_a_worker_that_cannot_reach_the_card_is_nobodys_crash(
    make_runner: MakeRunner, card: Callable[[int], None]
) -> None:
    card(0)
    with pytest.raises(GpuGoneError, match=r"candidate_0\.py was to be loaded"):
        make_runner(RIGHT, slots=pinned()).observe(GIVEN)


def test_deaths_on_a_cpu_say_nothing_about_a_card(make_runner: MakeRunner) -> None:
    runner = make_runner("import os\nos.abort()")
    for _ in range(4):
        assert runner.observe(GIVEN).outcome is Outcome.DIED
    assert not runner.gpu.gone


@no_card
def test_what_was_found_before_the_card_went_stands(make_subject: MakeSubject, card: Callable[[int], None]) -> None:
    card(1)
    subject = make_subject(RIGHT, slots=pinned())
    subject.runner._deaths_in_a_row = 2
    seen = engine.examine(subject, contract.SHAPES, QUICK, seed=1)
    assert (seen.outcome, seen.findings[0].kind) == ("failed", Kind.CRASH)
    assert "could not be run again" in seen.findings[0].details[-1]


def test_what_comes_after_is_not_examined(make_subject: MakeSubject) -> None:
    gpu = Gpu("the GPU does not answer any more since then")
    subject = make_subject(RIGHT, slots=pinned(), gpu=gpu)
    prop = Property("p", "", None, lambda trial, _: trial.report(), pinned=(parse("shape=2x2"),))
    seen = engine.examine(subject, prop, QUICK, seed=1)
    assert (seen.outcome, seen.reason, seen.findings) == ("not-examined", gpu.gone, ())
    broken = subject.probe()
    assert broken is not None
    assert "since then" in broken.text


@pytest.mark.parametrize(
    ("count", "fails", "said"),
    [
        (0, False, "no CUDA device is visible"),
        (1, True, "the CUDA device cannot be used: CUDA error: no kernel image is available"),
    ],
    ids=["available without devices", "a device that cannot be used"],
)
def test_a_gpu_counts_where_a_kernel_can_run(
    count: int, fails: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> torch.Tensor:
        assert fails, "nobody asks a device that is not there"
        raise RuntimeError("CUDA error: no kernel image is available\nmore")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch, "zeros", refuse)
    seen = machine.__wrapped__()
    assert (seen.gpu, seen.no_gpu) == ("", said)
