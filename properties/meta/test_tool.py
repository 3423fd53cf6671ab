"""A report names the kernelproof that made it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .. import records, tool


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    tool.commit.cache_clear()
    yield
    tool.commit.cache_clear()


def test_a_report_says_the_version_and_the_commit() -> None:
    facts = records.usage_error_report("x")["tool"]
    assert (facts["name"], facts["version"]) == ("kernelproof", tool.version())
    assert re.fullmatch(r"\d+\.\d+\.\d+", facts["version"])
    assert re.fullmatch(r"([0-9a-f]{40}\+?)?", facts["commit"])


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_the_checkout_and_of_no_repository_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *named, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def said(folder: Path) -> str:
        tool.commit.cache_clear()
        monkeypatch.setattr(tool, "ROOT", folder)
        monkeypatch.setattr(tool, "_FACTS", folder / "pyproject.toml")
        return tool.commit()

    inner = tmp_path / "inner"
    inner.mkdir()
    for folder in (tmp_path, inner):
        (folder / "pyproject.toml").write_text("", encoding="utf-8")
    assert said(tmp_path) == "", "no repository"
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    head = git("rev-parse", "HEAD")
    assert said(tmp_path) == head
    assert said(inner) == ""
    (tmp_path / "pyproject.toml").write_text("changed", encoding="utf-8")
    assert said(tmp_path) == f"{head}+"
