"""Trouble of the judging process itself, or of the card it judges on: no candidate answers for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from .. import engine
from ..cases import Case, parse
from ..device_memory import IpcError
from ..examination import Property
from ..findings import Finding, Kind
from ..gpu import Gpu, GpuGoneError
from ..memory import OutOfMemoryError
from ..process import WorkerProcess
from ..profiles import Profile
from ..runner import Runner
from ..slots import Slots
from ..trial import NotRunError, Trial
from .conftest import RIGHT, MakeRunner, MakeSubject

QUICK = Profile("test", examples=5, long_examples=1, longest=1 << 17, shrink_seconds=2, deaths=12)
CASE = parse("shape=2x2")


def pinned() -> Slots:
    return Slots("cuda:0", pinned=True)


def prop(check: object, promised: str = "") -> Property:
    return Property("p", "", None, check, pinned=(CASE,), promised=promised)  # type: ignore[arg-type]


def raising(error: Exception) -> object:
    def check(*_: object) -> None:
        raise error

    return check


def test_a_driver_that_fails_a_call_is_the_cards_end() -> None:
    gpu = Gpu()
    with pytest.raises(GpuGoneError, match="cuMemAlloc: unspecified launch failure"), gpu.watched("x"):
        raise IpcError("cuMemAlloc: unspecified launch failure")
    assert gpu.gone


@pytest.mark.parametrize("error", [GpuGoneError("gone since then"), OutOfMemoryError("needs 1 GiB on the GPU")])
def test_a_card_that_fails_before_a_candidate_has_run_is_not_its_fault(
    error: Exception, make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: Runner) -> WorkerProcess:
        raise error

    monkeypatch.setattr(Runner, "_start", start)
    broken = make_subject(RIGHT, slots=pinned()).probe()
    assert broken is not None
    assert (broken.kind, str(error) in broken.text) == (Kind.NOT_RUN, True)


def test_a_worker_is_ended_where_memory_does_not_suffice_to_show_it_any(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    process = Runner._process

    def noted(self: Runner) -> object:
        made.append(process(self))
        return made[-1]

    def share(*_: object) -> bool:
        raise OutOfMemoryError("needs 1 GiB on the GPU")

    monkeypatch.setattr(Runner, "_process", noted)
    monkeypatch.setattr(Slots, "share", share)
    with pytest.raises(OutOfMemoryError):
        make_runner(RIGHT, slots=pinned()).load()
    assert [each._log.closed for each in made if isinstance(each, WorkerProcess)] == [True]


@pytest.mark.parametrize(
    ("error", "slots", "gone"),
    [
        (OutOfMemoryError("needs 1 GiB of shared memory"), None, False),
        (NotRunError("needs a second GPU, have 1"), None, False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), pinned, False),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), pinned, True),
    ],
    ids=["memory", "not run", "the card's memory", "the card"],
)
def test_what_the_judge_lacks_is_not_run_and_examined_by_nobody(
    error: Exception, slots: object, gone: bool, make_subject: MakeSubject
) -> None:
    subject = make_subject(RIGHT, slots=slots() if callable(slots) else None)
    again = engine.replay(subject, prop(raising(error)), CASE)
    seen = engine.examine(subject, prop(raising(error)), QUICK, seed=1)
    for each in (again, seen):
        assert (each.outcome, each.findings) == ("not-examined", ())
        assert str(error) in each.reason
    assert bool(subject.runner.gpu.gone) == gone


def test_what_is_only_told_is_only_told_when_the_card_goes_away(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, slots=pinned(), gpu=Gpu())

    def check(trial: Trial, _: Case) -> None:
        subject.runner.gpu.lost("then")
        trial.report(Finding(Kind.WRONG_STREAM, "old data"))

    seen = engine.examine(subject, prop(check, "stream"), QUICK, seed=1)
    assert (seen.outcome, seen.findings[0].kind) == ("reported", Kind.WRONG_STREAM)
    assert "could not be run again" in seen.findings[0].details[-1]


def test_a_fresh_worker_is_fresh_on_every_device(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT)
    there = subject.on("cpu")
    there.runner = replace(there.runner, slots=Slots("cpu"))
    for each in (subject, there):
        assert each.runner.load() is None
    subject.renew()
    assert not subject.runner.loaded
    assert not there.runner.loaded
