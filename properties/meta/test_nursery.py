"""The nursery: what does not answer, or does not end, holds nobody up and confuses nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from .. import inputs
from .. import nursery as steps
from ..cases import parse
from ..observation import Outcome
from ..process import Nursery
from ..runner import Runner
from .conftest import RIGHT, MakeRunner

CASE = parse("shape=2x2")
#: Makes a runner of a body whose worker comes from a nursery of its own, and is loaded.
Loaded = Callable[[str], tuple[Runner, Nursery]]


@pytest.fixture
def loaded(make_runner: MakeRunner) -> Iterator[Loaded]:
    made: list[tuple[Runner, Nursery]] = []

    def make(body: str) -> tuple[Runner, Nursery]:
        runner, nursery = make_runner(body), Nursery()
        made.append((runner, nursery))
        runner.nursery = nursery
        assert runner.load() is None
        return runner, nursery

    yield make
    for runner, nursery in made:
        runner.close()
        nursery.close()


def test_a_late_answer_of_the_nursery_is_not_taken_for_the_next(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, slow = loaded(RIGHT)
    assert slow._process is not None
    process = slow._process
    monkeypatch.setattr("properties.process._ANSWER_SECONDS", 0.1)
    process.send_signal(signal.SIGSTOP)
    assert not slow.answers()
    process.send_signal(signal.SIGCONT)
    time.sleep(0.5)  # an answer would have come by now
    monkeypatch.undo()
    runner._process().close()
    runner.renew()
    assert runner.observe(inputs.build(CASE)).outcome is Outcome.RETURNED


def test_a_nursery_that_a_busy_machine_keeps_waiting_is_nobodys_doing(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, slow = loaded(RIGHT)
    assert slow._process is not None
    monkeypatch.setattr("properties.process._LOOK_AGAIN", 0.1)
    monkeypatch.setattr("properties.busy.stopped", lambda _: False)  # its silence is to be a busy machine's
    slow._process.send_signal(signal.SIGSTOP)
    turn = threading.Timer(0.5, slow._process.send_signal, (signal.SIGCONT,))
    turn.start()
    assert runner.observe(inputs.build(CASE)).outcome is Outcome.RETURNED
    turn.join()


def test_a_nursery_that_somebody_stopped_is_not_waited_for(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("properties.process._LOOK_AGAIN", 0.1)
    runner, _ = loaded(f"import os, signal\nif len(x) == 3: os.kill(os.getppid(), signal.SIGSTOP)\n{RIGHT}")
    began = time.monotonic()
    assert runner.observe(inputs.build(parse("shape=3x2"))).outcome is Outcome.DIED
    assert time.monotonic() - began < 20, "not the minute of a busy machine"
    assert runner.observe(inputs.build(CASE)).outcome is Outcome.RETURNED


def test_a_process_that_does_not_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as lasting:
        with monkeypatch.context() as patched:
            patched.setattr(steps, "_children", lambda: [lasting.pid])
            patched.setattr(os, "kill", lambda *_: None)
            began = time.monotonic()
            steps._end_orphans(set())
            assert time.monotonic() - began < 10
        assert lasting.poll() is None
        lasting.kill()
