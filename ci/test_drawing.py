"""A Python that can draw: made once in the cache, never in the caller's environment, and no reason to fail."""

import subprocess
from pathlib import Path

import pytest

from ci import drawing, fakes
from ci.exits import UNAVAILABLE, Stop


def find(cache: Path, *, offline: bool = False) -> tuple[Path | None, str]:
    return drawing.find_python(fakes.CHECKOUT, cache, offline=offline, say=lambda _: None)


def test_the_requirement_is_that_of_the_extra() -> None:
    assert drawing.requirement(fakes.CHECKOUT).startswith("matplotlib>=")


@pytest.mark.skipif(fakes.pip_here() is None, reason="this interpreter has no pip")
def test_a_venv_is_made_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    fakes.make_wheel(wheels, "matplotlib", "99.1")
    for name, value in fakes.sealed_variables(PIP_FIND_LINKS=str(wheels)).items():
        monkeypatch.setenv(name, value)
    python, why = find(tmp_path / "cache")
    assert python is not None, why
    said = subprocess.run(
        [python, "-c", "import matplotlib as m; print(m.__version__)"], capture_output=True, text=True
    )
    assert said.stdout == "99.1\n"
    monkeypatch.setattr(drawing, "make", lambda *_: pytest.fail("made twice"))
    assert find(tmp_path / "cache") == (python, "")
    assert find(tmp_path / "cache", offline=True) == (python, "")


def test_offline_makes_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    python, why = find(tmp_path / "cache", offline=True)
    assert python is None
    assert "-m pip install 'matplotlib>=" in why
    assert not (tmp_path / "cache").exists()


def test_what_cannot_be_made_is_a_reason_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Stop(UNAVAILABLE, "no index")

    monkeypatch.setattr(drawing, "pip_for", refuse)
    python, why = find(tmp_path / "cache")
    assert python is None
    assert "could not be: no index; install it" in why
    assert [path for path in (tmp_path / "cache" / "environments").iterdir() if path.is_dir()] == []


def test_a_cache_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    python, why = find(tmp_path / "cache")
    assert python is None
    assert "could not be" in why
