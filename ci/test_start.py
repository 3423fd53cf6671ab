"""The shell wrappers find a Python and the checkout from anywhere, and stop with one line where there is none."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from ci import fakes, start
from ci.exits import INTERNAL, UNAVAILABLE, USAGE

COMMANDS = ["verify", "gate", "test"]
TOO_OLD = "exit 1"


def variables(*folders: Path, **more: str) -> dict[str, str]:
    """A PATH of these folders and the system's tools, without the Pythons of this machine."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PATH", "PYTHON", "VIRTUAL_ENV")}
    return kept | {"PATH": os.pathsep.join(str(folder) for folder in folders)} | more


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with what the wrappers need of the system and no Python."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "readlink", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the commands under a path with a blank; its Python start says what reaches it."""
    folder = tmp_path / "check out"
    shutil.copytree(fakes.CHECKOUT / "ci", folder / "ci", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ci" / "start.py").write_text("import sys\nprint(sys.argv)\n", encoding="utf-8")
    return folder


def python_of(folder: Path, name: str, text: str = f'exec "{sys.executable}" "$@"') -> Path:
    return fakes.make_program(folder / name, text)


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_arrive_as_they_were_from_another_folder_and_through_links(
    tmp_path: Path, tools: Path, checkout: Path, command: str
) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to("second link")
    (elsewhere / "second link").symlink_to(checkout / "ci" / command)
    python_of(tools, "python3")
    for called in (str(checkout / "ci" / command), "./link", f"../check out/ci/{command}"):
        status, out, error = fakes.run([called, "--case=a b;'c'", "", "*"], variables(tools), elsewhere)
        assert status == 0, error
        assert out.strip() == repr([f"{checkout}/ci/start.py", command, "--case=a b;'c'", "", "*"])


def test_the_first_python_that_fits_is_taken(tools: Path, checkout: Path) -> None:
    python_of(tools, "python3", TOO_OLD)
    python_of(tools, "python3.12")
    status, out, _ = fakes.run([str(checkout / "ci" / "verify")], variables(tools))
    assert (status, "start.py" in out) == (0, True)


def test_no_python_that_fits_is_one_line(tools: Path, checkout: Path) -> None:
    python_of(tools, "python3", TOO_OLD)
    status, _, error = fakes.run([str(checkout / "ci" / "verify")], variables(tools))
    assert status == UNAVAILABLE
    assert error.count("\n") == 1
    assert "needs Python 3.11, 3.12 or 3.13" in error


def test_a_named_python_is_the_only_one_tried(tmp_path: Path, tools: Path, checkout: Path) -> None:
    named = python_of(tmp_path / "my pythons", "mine")
    python_of(tools, "python3", TOO_OLD)
    assert fakes.run([str(checkout / "ci" / "verify")], variables(tools, PYTHON=str(named)))[0] == 0
    named.write_text(f"#!/bin/sh\n{TOO_OLD}\n", encoding="utf-8")
    for python, complaint in ((str(named), "is not Python 3.11"), ("nowhere", "no program that can be run")):
        status, _, error = fakes.run([str(checkout / "ci" / "verify")], variables(tools, PYTHON=python))
        assert status == USAGE
        assert error.count("\n") == 1
        assert complaint in error


@pytest.mark.parametrize("platform", ["win32", "cygwin", "msys"])
def test_windows_is_one_line_that_names_wsl2(
    platform: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert start.main(["verify"]) == UNAVAILABLE
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "WSL2" in error


def test_linux_and_macos_are_supported() -> None:
    assert start.platform_problem("linux") is None
    assert start.platform_problem("darwin") is None


@pytest.mark.parametrize("command", COMMANDS)
def test_the_real_commands_explain_themselves_and_refuse_what_they_do_not_know(tmp_path: Path, command: str) -> None:
    environment = fakes.sealed_variables(PYTHON=sys.executable, KERNELPROOF_CACHE=str(tmp_path / "cache"))
    program = str(fakes.CHECKOUT / "ci" / command)
    status, out, error = fakes.run([program, "--help"], environment, tmp_path)
    assert (status, error) == (0, "")
    assert f"usage: ci/{command}" in out
    status, out, error = fakes.run([program, "--no-such-option"], environment, tmp_path)
    assert (status, out, error.count("\n")) == (USAGE, "", 1)
    assert "--no-such-option" in error
    assert not (tmp_path / "cache").exists(), "nothing is set up for a call that is wrong"


def test_a_program_error_is_an_internal_error_and_never_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ci import verify

    def fail(_: list[str]) -> int:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(verify, "main", fail)
    assert start.main(["verify"]) == INTERNAL
    assert "ZeroDivisionError: planted" in capsys.readouterr().err


def test_what_ci_runs_is_the_test_command(tmp_path: Path, tools: Path, checkout: Path) -> None:
    shutil.copytree(fakes.CHECKOUT / ".ci", checkout / ".ci")
    python_of(tools, "python3")
    bash = shutil.which("bash")
    assert bash is not None
    status, out, error = fakes.run([bash, str(checkout / ".ci" / "run")], variables(tools), tmp_path)
    assert status == 0, error
    assert out.strip() == repr([f"{checkout}/ci/start.py", "test", "-n", "2"])
