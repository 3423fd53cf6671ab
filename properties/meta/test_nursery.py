"""The nursery: what does not answer, or does not end, holds nobody up and confuses nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .. import inputs
from .. import nursery as steps
from ..cases import parse
from ..observation import Outcome
from ..options import ROOT
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


#: Has a worker make one call, and is killed while it does.
JUDGE = """
import sys
from pathlib import Path
from properties import inputs
from properties.cases import parse
from properties.limits import Limits
from properties.process import Nursery
from properties.runner import Runner
path = Path(sys.argv[1])
Runner(path, (), Limits(60.0, 60.0, 60.0), Nursery(), path.parent / "cache").observe(inputs.build(parse("shape=2x2")))
"""
CALL = """
import os, signal, subprocess, time
from pathlib import Path
def ModelNew():
    def call(x):
        other = subprocess.Popen(["sleep", "60"], start_new_session=True)
        told = Path(__file__).with_name("told")
        told.with_suffix(".new").write_text(f"{{os.getpid()}} {{os.getppid()}} {{other.pid}}")
        told.with_suffix(".new").rename(told)
        {body}
    return call
"""


def ended(pid: int, until: float) -> bool:
    """Whether a process has ended, at this time of the monotonic clock at the latest; nobody may have reaped it."""
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if " Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii"):
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is told of its parent's end")
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)",
    ],
    ids=["hung", "stopped", "nursery stopped"],
)
def test_when_the_judging_process_is_killed_nothing_of_it_is_left(body: str, tmp_path: Path) -> None:
    (tmp_path / "candidate.py").write_text(CALL.format(body=body), encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", JUDGE, str(tmp_path / "candidate.py")], cwd=ROOT) as judge:
        until = time.monotonic() + 60
        while not (tmp_path / "told").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.2)  # it has told before it hangs or stops
        judge.kill()
    found = [int(pid) for pid in (tmp_path / "told").read_text(encoding="utf-8").split()]
    until = time.monotonic() + 5
    left = [pid for pid in found if not ended(pid, until)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


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
