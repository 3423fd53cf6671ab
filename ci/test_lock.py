"""The lock ends with its holder, passes to children, and is not waited for without an end."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import fakes
from ci.exits import UNAVAILABLE, Stop
from ci.lock import held

HOLD = """
import subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from ci.lock import held
with held(Path(sys.argv[1]), 5, print) as descriptor:
    child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=(descriptor,))
    print(child.pid, flush=True)
    time.sleep(60)
"""


def start_holder(lock: Path, child_seconds: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD.format(root=str(fakes.CHECKOUT)), str(lock), child_seconds]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline().strip().isdigit()
    return holder


def end(holder: "subprocess.Popen[str]") -> None:
    holder.kill()
    holder.communicate()


def test_a_free_lock_is_taken_again_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        with held(tmp_path / "lock", 0, pytest.fail):
            pass


def test_a_held_lock_stops_in_time_and_names_itself_and_its_holder(tmp_path: Path) -> None:
    holder = start_holder(tmp_path / "lock", "0")
    told: list[str] = []
    try:
        with pytest.raises(Stop, match=str(holder.pid)) as stopped, held(tmp_path / "lock", 0.3, told.append):
            pytest.fail("held by two")
    finally:
        end(holder)
    assert stopped.value.code == UNAVAILABLE
    assert str(tmp_path / "lock") in stopped.value.line
    assert len(told) == 1


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    holder = start_holder(tmp_path / "lock", "0")
    end(holder)
    told: list[str] = []
    with held(tmp_path / "lock", 5, told.append):
        pass


def test_a_child_that_outlives_a_killed_holder_keeps_the_lock(tmp_path: Path) -> None:
    holder = start_holder(tmp_path / "lock", "1.5")
    holder.kill()
    holder.wait()
    told: list[str] = []
    begin = time.monotonic()
    with pytest.raises(Stop), held(tmp_path / "lock", 0.2, told.append):
        pytest.fail("the child still works")
    with held(tmp_path / "lock", 10, told.append):
        assert time.monotonic() - begin > 0.5
    holder.communicate()
