"""The nursery: what does not answer, or does not end, holds nobody up and confuses nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest

from .. import inputs
from .. import nursery as steps
from ..cases import parse
from ..observation import Outcome
from ..process import Nursery
from .conftest import RIGHT, MakeRunner

CASE = parse("shape=2x2")


def test_a_late_answer_of_the_nursery_is_not_taken_for_the_next(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make_runner(RIGHT)
    runner.nursery = slow = Nursery()
    try:
        assert runner.load() is None
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
    finally:
        runner.close()
        slow.close()


def test_a_nursery_that_a_busy_machine_keeps_waiting_is_nobodys_doing(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make_runner(RIGHT)
    runner.nursery = slow = Nursery()
    try:
        assert runner.load() is None
        assert slow._process is not None
        monkeypatch.setattr("properties.process._LOOK_AGAIN", 0.1)
        monkeypatch.setattr("properties.busy.stopped", lambda _: False)  # its silence is to be a busy machine's
        slow._process.send_signal(signal.SIGSTOP)
        turn = threading.Timer(0.5, slow._process.send_signal, (signal.SIGCONT,))
        turn.start()
        assert runner.observe(inputs.build(CASE)).outcome is Outcome.RETURNED
        turn.join()
    finally:
        runner.close()
        slow.close()


def test_a_nursery_that_somebody_stopped_is_not_waited_for(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("properties.process._LOOK_AGAIN", 0.1)
    runner = make_runner(f"import os, signal\nif len(x) == 3: os.kill(os.getppid(), signal.SIGSTOP)\n{RIGHT}")
    runner.nursery = victim = Nursery()
    try:
        assert runner.load() is None
        began = time.monotonic()
        assert runner.observe(inputs.build(parse("shape=3x2"))).outcome is Outcome.DIED
        assert time.monotonic() - began < 20, "not the minute of a busy machine"
        assert runner.observe(inputs.build(CASE)).outcome is Outcome.RETURNED
    finally:
        runner.close()
        victim.close()


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
