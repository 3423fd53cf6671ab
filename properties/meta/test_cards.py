"""Which card comes first in each process of a run with several."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..cards import VARIABLE, turned, visible
from ..options import ROOT


def test_every_process_begins_with_a_card_of_its_own_and_sees_the_others_behind_it() -> None:
    cards = visible(None, 4)
    assert [turned(cards, f"gw{number}") for number in range(4)] == ["0,1,2,3", "1,2,3,0", "2,3,0,1", "3,0,1,2"]


def test_processes_beyond_the_number_of_cards_begin_again() -> None:
    assert [turned(visible(None, 2), f"gw{number}") for number in range(5)] == ["0,1", "1,0", "0,1", "1,0", "0,1"]


@pytest.mark.parametrize(
    ("named", "count", "cards"),
    [
        ("2,3", 2, ["2", "3"]),
        (" 5 , 1", 2, ["5", "1"]),
        ("GPU-8f, GPU-1c", 2, ["GPU-8f", "GPU-1c"]),
        ("0,-1,1", 1, ["0"]),
        ("", 0, []),
        (None, 0, []),
    ],
)
def test_what_is_set_already_is_kept_to(named: str | None, count: int, cards: list[str]) -> None:
    assert visible(named, count) == cards


TESTS = f"""
import os, pathlib, time
import pytest


@pytest.mark.parametrize("number", range(6))
def test_which(number, worker_id):
    time.sleep(0.3)  # so that each process gets some
    pathlib.Path("found", worker_id).write_text(os.environ["{VARIABLE}"])
"""


def test_each_xdist_process_has_its_card_before_it_counts(tmp_path: Path) -> None:
    """As pytest does it. The cards are made up: no driver is asked, for there may be none."""
    pytest.importorskip("xdist")
    (tmp_path / "test_which.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "found").mkdir()
    (tmp_path / "counted.py").write_text("import torch\n\ntorch.cuda.device_count = lambda: 2\n", encoding="utf-8")
    hidden = ("PYTEST", "KERNELPROOF")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {VARIABLE: "4,7", "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-p", "counted", "-p", "properties.plugin", "-p", "no:cacheprovider"]
    command += ["-n2", "-q", f"--rootdir={tmp_path}", "test_which.py"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    found = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "found").iterdir()}
    assert found == {"gw0": "4,7", "gw1": "7,4"}, done.stdout + done.stderr
