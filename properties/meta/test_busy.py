"""Who works while a worker is silent: its own loop, or a compiler that it started?"""

import subprocess
import sys
from pathlib import Path

import pytest

from properties import busy


def entry(processes: Path, pid: int, session: int, own: int, children: int, command: str = "(cc1plus)") -> None:
    """A process as the process table shows it, with user times alone."""
    fields = [pid, command, "R", 1, session, session, *[0] * 7, own, 0, children, 0, 20, 0]
    (processes / str(pid)).mkdir()
    (processes / str(pid) / "stat").write_text(" ".join(map(str, fields)))


def test_the_workers_own_time_does_not_count(tmp_path: Path) -> None:
    entry(tmp_path, 100, 100, own=5000, children=0)
    assert busy.helpers_work(100, tmp_path) == 0


def test_helpers_in_its_session_and_waited_children_count(tmp_path: Path) -> None:
    entry(tmp_path, 100, 100, own=5000, children=3)
    entry(tmp_path, 101, 100, own=20, children=0)
    entry(tmp_path, 102, 100, own=0, children=400)
    entry(tmp_path, 103, 99, own=7000, children=0)
    assert busy.helpers_work(100, tmp_path) == 423


def test_a_command_with_blanks_and_brackets_is_read_over(tmp_path: Path) -> None:
    entry(tmp_path, 100, 100, own=1, children=0)
    entry(tmp_path, 101, 100, own=9, children=0, command="(a) b (c)")
    assert busy.helpers_work(100, tmp_path) == 9


def test_no_process_table_means_no_helpers(tmp_path: Path) -> None:
    assert busy.helpers_work(100, tmp_path / "none") == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's process table")
def test_a_real_helper_is_seen() -> None:
    loop = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    start = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {loop!r}])"
    parent = f"{start}\nprint(flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", parent], start_new_session=True, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            assert busy.helpers_work(child.pid) >= 20
        finally:
            child.kill()
