"""What pip is told and what is read off its answers."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from ci import fakes
from ci.exits import UNAVAILABLE, Stop, Terminated
from ci.installer import (
    Installed,
    Pip,
    accelerator_packages,
    explain,
    pip_variables,
    read_report,
    versions_on_offer,
)


def resolved(*names: str) -> tuple[Installed, ...]:
    return tuple(Installed(*name.split()) for name in names)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-cudnn-cu13 9.2",
        "nvidia_nccl_cu12 2.2",
        "cuda-toolkit 13.0",
        "cuda-bindings 13",
        "triton 3.8.0",
        "pytorch-triton-rocm 3",
        "rocm 6.4",
        "torch 2.12.0+cu130",
        "torch 2.12.0+rocm6.4",
    ],
)
def test_what_an_accelerator_build_brings_is_recognised(name: str) -> None:
    assert accelerator_packages(resolved("numpy 2.0", name))


def test_a_cpu_build_brings_none_of_it() -> None:
    names = ["torch 2.13.0+cpu", "sympy 1.14.0", "networkx 3.6", "fsspec 2026.9", "tritonclient 2", "cudatext 1"]
    assert accelerator_packages(resolved(*names)) == ()


def test_the_report_of_a_dry_run_is_read() -> None:
    item = {"metadata": {"name": "torch", "version": "2.14.1", "requires_dist": []}, "download_info": {}}
    assert read_report(json.dumps({"version": "1", "install": [item]})) == resolved("torch 2.14.1")


def test_versions_on_offer_are_read_and_nothing_is_none() -> None:
    text = "WARNING: experimental\ntorch (2.15.0)\nAvailable versions: 2.15.0, 2.13.0+cpu, 2.13.0\n"
    assert versions_on_offer(text) == ("2.15.0", "2.13.0+cpu", "2.13.0")
    assert versions_on_offer("ERROR: No matching distribution found for torch") == ()


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] no room, in another language",
            "disk is full",
        ),
        ("ERROR: Could not install packages due to an OSError: [Errno 27] File too large", "as CUDA builds do"),
        ("error: could not write: No space left on device", "disk is full"),
        ("ERROR: No matching distribution found for ninja>=1.11", "no source on offer has ninja>=1.11"),
        (
            "NewConnectionError: Failed to establish a new connection: refused\n"
            "ERROR: No matching distribution found for rich>=13.9 (from versions: none)",
            "no package source can be reached (needed: rich>=13.9)",
        ),
        ("ERROR: Cannot install a and b.\nERROR: ResolutionImpossible: for help visit x", "Cannot install a and b."),
        ("ERROR: first\nERROR: last words\nmore", "last words"),
        ("killed", "gave no reason"),
    ],
)
def test_the_reason_of_a_failure_is_read_off_the_output(output: str, reason: str) -> None:
    assert reason in explain(output)


def test_the_users_settings_stay_and_what_would_misdirect_pip_goes() -> None:
    variables = {"PIP_INDEX_URL": "I", "PIP_FIND_LINKS": "F", "PIP_TARGET": "/t", "PIP_PREFIX": "/p", "PIP_USER": "1"}
    result = pip_variables(variables, offline=False)
    assert (result["PIP_INDEX_URL"], result["PIP_FIND_LINKS"], result["PIP_USER"]) == ("I", "F", "0")
    assert not {"PIP_TARGET", "PIP_PREFIX", "PIP_NO_INDEX"} & set(result)


def test_offline_takes_the_index_away() -> None:
    assert pip_variables({}, offline=True)["PIP_NO_INDEX"] == "1"
    assert pip_variables({"UV_OFFLINE": "1"}, offline=False)["PIP_NO_INDEX"] == "1"


def test_uvs_settings_count_where_pips_are_unset() -> None:
    variables = {
        "UV_DEFAULT_INDEX": "mine=https://a.example/simple",
        "UV_INDEX": "x=https://b.example https://c.example",
        "UV_FIND_LINKS": "/w1,/w2",
    }
    result = pip_variables(variables, offline=False)
    assert result["PIP_INDEX_URL"] == "https://a.example/simple"
    assert result["PIP_EXTRA_INDEX_URL"] == "https://b.example https://c.example"
    assert result["PIP_FIND_LINKS"] == "/w1 /w2"
    assert pip_variables(variables | {"PIP_INDEX_URL": "pips"}, offline=False)["PIP_INDEX_URL"] == "pips"


def fake_pip(folder: Path, text: str) -> Pip:
    program = fakes.make_program(folder / "pip", text)
    return Pip((str(program),), {"PATH": "/usr/bin:/bin"}, folder / "log")


def test_a_failed_install_stops_with_the_reason_and_the_log(tmp_path: Path) -> None:
    pip = fake_pip(tmp_path, "echo 'ERROR: No matching distribution found for ninja>=1.11' >&2; exit 1")
    with pytest.raises(Stop, match=r"no source on offer has ninja>=1\.11 .*log") as stopped:
        pip.install(["ninja>=1.11"], None)
    assert stopped.value.code == UNAVAILABLE
    assert "install --quiet ninja>=1.11" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_dry_run_that_fetches_a_large_file_is_ended(tmp_path: Path) -> None:
    pip = fake_pip(tmp_path, f"dd if=/dev/zero of='{tmp_path}/wheel' bs=1M count=8 2>/dev/null && echo fetched")
    status, output = pip.run([], timeout=60, largest_file=4 << 20)
    assert status != 0
    assert "fetched" not in output
    assert (tmp_path / "wheel").stat().st_size <= 4 << 20
    assert pip.run([], timeout=60)[0] == 0


def test_a_pip_that_hangs_is_ended(tmp_path: Path) -> None:
    status, output = fake_pip(tmp_path, "echo begun; exec sleep 60").run([], timeout=0.5)
    assert status == 124
    assert "stopped after" in explain(output)


def test_a_resolution_gives_its_packages_or_its_reason(tmp_path: Path) -> None:
    document = json.dumps({"install": [{"metadata": {"name": "torch", "version": "2.13.0+cpu"}}]})
    pip = fake_pip(tmp_path, f"for a; do case $a in --report=*) echo '{document}' > \"${{a#--report=}}\";; esac; done")
    assert pip.resolve(["torch"], None, tmp_path / "r.json") == resolved("torch 2.13.0+cpu")
    assert fake_pip(tmp_path, "echo ERROR: no; exit 1").resolve(["torch"], None, tmp_path / "r.json") == "no"


def gone(pid: int) -> bool:
    """Whether a process ends within a few seconds."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return True  # nobody has asked yet how it ended
        time.sleep(0.05)
    return False


#: For another Python pip starts itself once more there, and it is that process which does the work.
TWO = "sleep 60 & echo $! > {folder}/second; echo begun; wait"


def test_what_pip_has_started_ends_with_it(tmp_path: Path) -> None:
    status, output = fake_pip(tmp_path, TWO.format(folder=tmp_path)).run([], timeout=1)
    assert status == 124
    assert output.startswith("begun\n")
    assert gone(int((tmp_path / "second").read_text()))


def test_an_interrupt_ends_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        while not (tmp_path / "second").exists() or not (tmp_path / "second").read_text():
            time.sleep(0.05)
        raise Terminated

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(Terminated):
        fake_pip(tmp_path, TWO.format(folder=tmp_path)).run([], timeout=60)
    assert gone(int((tmp_path / "second").read_text()))
