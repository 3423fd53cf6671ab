"""Environments are made for real here, with pip, out of packages that cost no download.

The caller is a throwaway venv whose torch is a few bytes; where torch is missing, wheels of a few bytes lie in a
folder that pip is pointed at.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import environment, fakes
from ci.exits import UNAVAILABLE
from ci.plan import KNOWN_CPU_TORCH

NEEDS = ["torch>=2.9", "fakedep>=1.0"]


def snapshot(folder: Path) -> dict[str, float]:
    """Every file below a folder with its time of change; compiled files aside, which Python itself writes."""
    files = (path for path in folder.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.lstat().st_mtime for path in files}


def version_seen(made: str, module: str) -> str:
    """The version and file of a module as an environment's interpreter imports it."""
    code = f"import {module} as m; print(m.__version__, m.__file__)"
    status, out, error = fakes.run([f"{made}/bin/python", "-c", code], fakes.sealed_variables())
    assert status == 0, error
    return out.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return fakes.make_checkout(tmp_path / "check out", NEEDS, tools=["faketool>=1"])


def test_a_caller_with_all_that_is_needed_is_overlaid_without_a_download(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0+cu130", "fakedep": "1.5"})
    before = snapshot(tmp_path / "caller")
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache")
    status, out, error = fakes.run(command, fakes.sealed_variables())
    assert status == 0, error
    made = out.strip()
    assert version_seen(made, "torch").startswith(f"2.11.0+cu130 {tmp_path}/caller/")
    assert version_seen(made, "fakedep").startswith("1.5")
    assert snapshot(tmp_path / "caller") == before
    assert "setting up" in error
    assert fakes.run(command, fakes.sealed_variables()) == (0, out, "")


def test_a_package_too_old_in_the_caller_is_newer_in_the_overlay_only(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "0.5"})
    before = snapshot(tmp_path / "caller")
    fakes.make_wheel(tmp_path / "wheels", "fakedep", "1.2")
    fakes.make_wheel(tmp_path / "wheels", "torch", "2.99.0")
    variables = fakes.sealed_variables(PIP_FIND_LINKS=str(tmp_path / "wheels"))
    status, out, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), variables)
    assert status == 0, error
    assert version_seen(out.strip(), "fakedep").startswith(f"1.2 {out.strip()}")
    assert version_seen(out.strip(), "torch").startswith("2.11.0 ")
    assert snapshot(tmp_path / "caller") == before


@pytest.mark.slow
def test_a_package_that_would_bring_another_torch_is_refused(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0"})
    fakes.make_wheel(tmp_path / "wheels", "fakedep", "1.2", requires=["torch>=2.12"])
    fakes.make_wheel(tmp_path / "wheels", "torch", "2.99.0")
    variables = fakes.sealed_variables(PIP_FIND_LINKS=str(tmp_path / "wheels"))
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache", offline=False)
    status, _, error = fakes.run(command, variables)
    assert status == UNAVAILABLE
    assert "STOP" in error
    assert not list((tmp_path / "cache" / "environments").glob("*/bin/python"))


def test_offline_names_what_is_missing(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0"})
    status, _, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), fakes.sealed_variables())
    assert status == UNAVAILABLE
    assert "STOP fakedep>=1.0: missing, and --offline downloads nothing; install what is missing" in error


def test_offline_without_torch_names_torch_too(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {})
    status, _, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), fakes.sealed_variables())
    assert status == UNAVAILABLE
    assert "STOP torch>=2.9, fakedep>=1.0: missing, and --offline downloads nothing" in error


def test_a_caller_torch_that_cannot_be_imported_is_named(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    broken = fakes.site_of(tmp_path / "caller") / "torch" / "__init__.py"
    broken.write_text("raise ImportError('libcudart.so.13 is missing')\n", encoding="utf-8")
    status, _, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), fakes.sealed_variables())
    assert status == UNAVAILABLE
    assert "torch of the calling interpreter cannot be imported (ImportError: libcudart.so.13 is missing)" in error


@pytest.mark.slow
def test_an_editable_torch_of_the_caller_is_found(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"fakedep": "1.5"})
    fakes.put_package(tmp_path / "source tree", "torch", "2.12.0a0+git1")
    pth = fakes.site_of(tmp_path / "caller") / "editable.pth"
    pth.write_text(f"{tmp_path}/source tree\n", encoding="utf-8")
    status, out, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), fakes.sealed_variables())
    assert status == 0, error
    assert version_seen(out.strip(), "torch") == f"2.12.0a0+git1 {tmp_path}/source tree/torch/__init__.py"


@pytest.mark.slow
def test_the_pip_settings_of_a_callers_venv_count(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0"})
    fakes.make_wheel(tmp_path / "wheels", "fakedep", "1.2")
    settings = f"[global]\nno-index = true\nfind-links = {tmp_path}/wheels\n"
    (tmp_path / "caller" / "pip.conf").write_text(settings, encoding="utf-8")
    variables = fakes.sealed_variables()
    del variables["PIP_CONFIG_FILE"]  # os.devnull there switches every file off
    status, out, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), variables)
    assert status == 0, error
    assert version_seen(out.strip(), "fakedep").startswith("1.2 ")


def test_what_a_killed_set_up_left_is_made_anew(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache")
    made = Path(fakes.run(command, fakes.sealed_variables())[1].strip())
    (made / environment.MARKER).unlink()
    (made / "half written").touch()
    status, out, error = fakes.run(command, fakes.sealed_variables())
    assert (status, out.strip()) == (0, str(made)), error
    assert not (made / "half written").exists()
    assert (made / environment.MARKER).exists()


def test_a_set_up_killed_for_real_is_not_taken_for_complete(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    pip = fakes.site_of(tmp_path / "caller") / "pip"
    pip.unlink(missing_ok=True)
    pip.mkdir()
    (pip / "__init__.py").touch()
    slow = (
        f"import sys, time, pathlib\nif 'install' in sys.argv:\n    pathlib.Path({str(tmp_path / 'begun')!r}).touch()\n"
    )
    (pip / "__main__.py").write_text(slow + "    time.sleep(2)\n", encoding="utf-8")
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache")
    first = subprocess.Popen(
        command, env=fakes.sealed_variables(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(300):
        if (tmp_path / "begun").exists():
            break
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not list((tmp_path / "cache").rglob(environment.MARKER))
    shutil.rmtree(pip)
    real = fakes.pip_here()
    if real is not None:
        pip.symlink_to(real)
    status, out, error = fakes.run(command, fakes.sealed_variables())
    assert status == 0, error
    assert "waiting for the set-up of process" in error, "the first one's pip was still at work"
    assert version_seen(out.strip(), "torch").startswith("2.11.0 ")


def test_two_set_ups_at_once_make_one_environment(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache")
    both = [
        subprocess.Popen(
            command, env=fakes.sealed_variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    results = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert sum(error.count("setting up") for _, error in results) == 1


def test_tools_are_added_to_the_same_environment_and_a_missing_one_is_written_down(
    tmp_path: Path, checkout: Path
) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    variables = fakes.sealed_variables()
    made = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), variables)[1]
    command = fakes.ensure_command(caller, checkout, tmp_path / "cache", tools=True)
    status, out, error = fakes.run(command, variables)
    assert (status, out) == (0, made), error
    assert "faketool>=1" in error
    marker = json.loads((Path(made.strip()) / environment.MARKER).read_text(encoding="utf-8"))
    assert (marker["tools"], marker["missing"]) == ([], ["faketool>=1"])
    assert fakes.run(command, variables) == (0, out, "")


def test_the_environments_own_interpreter_needs_no_further_one(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    made = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), fakes.sealed_variables())[1]
    command = fakes.ensure_command(Path(made.strip()) / "bin" / "python", checkout, tmp_path / "cache")
    assert fakes.run(command, fakes.sealed_variables()) == (0, made, "")


def test_an_externally_managed_python_is_overlaid_and_left_alone(tmp_path: Path, checkout: Path) -> None:
    system = Path("/usr/bin/python3")
    code = "import sys, sysconfig, os; v = sys.version_info[:2]; "
    code += (
        "print(int((3, 11) <= v <= (3, 13) and os.path.exists(sysconfig.get_path('stdlib') + '/EXTERNALLY-MANAGED')))"
    )
    if not system.exists() or fakes.run([str(system), "-c", code], fakes.sealed_variables())[1].strip() != "1":
        pytest.skip("this machine has no externally managed Python 3.11 to 3.13")
    variables = fakes.sealed_variables(PYTHONUSERBASE=str(tmp_path / "user"))
    site = "import site; print(site.getusersitepackages())"
    user = Path(fakes.run([str(system), "-c", site], variables)[1].strip())
    for name, version in (("torch", "2.11.0"), ("fakedep", "1.5")):
        fakes.put_package(user, name, version)
    before = snapshot(tmp_path / "user")
    status, out, error = fakes.run(fakes.ensure_command(system, checkout, tmp_path / "cache"), variables)
    if "has neither ensurepip nor pip" in error:
        pytest.skip("this machine's Python has neither ensurepip nor pip")
    assert status == 0, error
    assert version_seen(out.strip(), "torch").startswith(f"2.11.0 {tmp_path}/user/")
    assert snapshot(tmp_path / "user") == before


def cuda_wheels(folder: Path) -> None:
    """A torch that brings CUDA packages, and what else is needed."""
    fakes.make_wheel(folder, "fakedep", "1.2")
    fakes.make_wheel(folder, "nvidia-cublas", "13.1")
    fakes.make_wheel(folder, "torch", "2.14.1", requires=["nvidia-cublas"])


@pytest.mark.parametrize("label", ["+cpu", pytest.param("", marks=pytest.mark.slow)])
def test_without_torch_and_gpu_a_cpu_build_is_chosen(tmp_path: Path, checkout: Path, label: str) -> None:
    known = KNOWN_CPU_TORCH.get(os.uname().machine)
    if known is None:
        pytest.skip(f"no CPU build is known for {os.uname().machine}")
    caller = fakes.make_caller(tmp_path / "caller", {})
    cuda_wheels(tmp_path / "wheels")
    fakes.make_wheel(tmp_path / "wheels", "torch", f"{known}{label}")
    variables = fakes.sealed_variables(PIP_FIND_LINKS=str(tmp_path / "wheels"))
    status, out, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), variables)
    assert status == 0, error
    assert version_seen(out.strip(), "torch").startswith(f"{known}{label} {out.strip()}")
    assert not list(Path(out.strip()).rglob("nvidia*"))


def test_without_torch_and_gpu_a_cuda_build_never_comes_by_accident(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {})
    cuda_wheels(tmp_path / "wheels")
    variables = fakes.sealed_variables(PIP_FIND_LINKS=str(tmp_path / "wheels"))
    status, _, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache"), variables)
    assert status == UNAVAILABLE
    assert "STOP no CPU build of torch >= 2.9 is on offer" in error
    assert "torch>=2.9 would bring CUDA packages of several GB" in error
    assert "PYTHON=" in error
    assert not list((tmp_path / "cache").rglob("nvidia*"))


@pytest.mark.slow
def test_without_torch_but_with_a_gpu_the_default_build_comes(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {})
    cuda_wheels(tmp_path / "wheels")
    variables = fakes.sealed_variables(PIP_FIND_LINKS=str(tmp_path / "wheels"))
    status, out, error = fakes.run(fakes.ensure_command(caller, checkout, tmp_path / "cache", gpu=True), variables)
    assert status == 0, error
    assert version_seen(out.strip(), "torch").startswith("2.14.1 ")
    assert list(Path(out.strip()).rglob("nvidia*"))


def test_a_cache_path_with_a_blank_is_refused_only_where_torch_would_lie_there(tmp_path: Path, checkout: Path) -> None:
    bare = fakes.make_caller(tmp_path / "bare", {})
    command = fakes.ensure_command(bare, checkout, tmp_path / "my cache")
    status, _, error = fakes.run(command, fakes.sealed_variables())
    assert status == UNAVAILABLE
    assert "path with blanks" in error
    full = fakes.make_caller(tmp_path / "full", {"torch": "2.11.0", "fakedep": "1.5"})
    command = fakes.ensure_command(full, checkout, tmp_path / "my cache")
    assert fakes.run(command, fakes.sealed_variables())[0] == 0


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, checkout: Path) -> None:
    caller = fakes.make_caller(tmp_path / "caller", {"torch": "2.11.0", "fakedep": "1.5"})
    (tmp_path / "file").touch()
    command = fakes.ensure_command(caller, checkout, tmp_path / "file" / "cache")
    status, _, error = fakes.run(command, fakes.sealed_variables())
    assert status == UNAVAILABLE
    assert error.count("\n") == 1
    assert "set KERNELPROOF_CACHE" in error


def test_a_full_disk_is_told_from_a_forbidden_one() -> None:
    full = environment.explain_os_error(OSError(28, "No space left on device"), Path("/c"))
    forbidden = environment.explain_os_error(PermissionError(13, "Permission denied", "/c/x"), Path("/c"))
    assert "full" in full
    assert forbidden.startswith("/c/x: Permission denied")


def test_programs_run_with_the_environments_programs_first_and_without_weakened_verdicts(tmp_path: Path) -> None:
    made = environment.Environment(tmp_path, tmp_path / "c", ("/env/bin", "/caller/bin"), "2.11.0", True, ())
    variables = made.variables({"PATH": "/usr/bin", "PYTHONHOME": "/x", "PYTEST_ADDOPTS": "--isolation=none"})
    assert variables == {
        "PATH": "/env/bin:/caller/bin:/usr/bin",
        "VIRTUAL_ENV": str(tmp_path),
        "KERNELPROOF_CACHE": str(tmp_path / "c"),
    }


def test_the_requirements_are_read_from_the_projects_own_file() -> None:
    needs = environment.read_needs(fakes.CHECKOUT)
    assert "torch>=2.9" in needs.dependencies
    assert any(tool.startswith("ruff") for tool in needs.tools)
    assert sys.version_info >= (3, 11)
