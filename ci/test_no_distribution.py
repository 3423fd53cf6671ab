"""`pip install .` says in one line what to do instead."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.no_distribution import WORDS

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(
    subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0,
    reason="this interpreter has no pip",
)
def test_pip_install_says_that_it_runs_from_a_checkout(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, tmp_path)
    (tmp_path / "ci").mkdir()
    shutil.copy(CHECKOUT / "ci" / "no_distribution.py", tmp_path / "ci")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", f"--target={tmp_path / 'x'}", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert WORDS in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
