"""What can be known of the CUDA kernel without a GPU: that it compiles for every architecture we claim, and to what.

nvcc compiles the device code with warnings as errors. Its resource report and its PTX answer the rest: nothing spills
to local memory, divisions and denormals are IEEE's. What is not seen here is the code running. `choices` asks which
kernel a call gets.
"""

import itertools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from kernels.cuda.op import SOURCES

# Architecture of the PTX, and machine code to make of it: one pass of the front end serves all cards without clusters.
TARGETS = {"80": ("80", "86", "89"), "90a": ("90a",), "100a": ("100a",), "120": ("120",)}
ARCHITECTURES = tuple(itertools.chain.from_iterable(TARGETS.values()))

FLAGS = ("-std=c++17", "-O3", "-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra")
# Seconds; 40 with two idle cores, more where they are shared.
COMPILE_TIMEOUT = 600


def find_nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    places = [Path(home) / "bin"] if home else []
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"])
    return shutil.which("nvcc", path=path)


@pytest.fixture(scope="module")
def nvcc() -> str:
    found = find_nvcc()
    if found is None:
        pytest.skip("nvcc, the CUDA compiler, is not on this machine: the device code was not compiled")
    return found


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=COMPILE_TIMEOUT, check=False
    )


@dataclass(frozen=True)
class Compiled:
    """What a run of nvcc told.

    Attributes:
        known: Architectures that this nvcc knows.
        log: Its messages, with the resources of each kernel.
        ptx: The PTX by the architecture it is for.
    """

    known: frozenset[str]
    log: str
    ptx: dict[str, str]


@pytest.fixture(scope="module")
def compiled(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    answer = run(nvcc, "--list-gpu-code")
    known = frozenset(code.removeprefix("sm_") for code in answer.stdout.split()) & set(ARCHITECTURES)
    # Families such as 90a are listed from CUDA 12.9 on only; every nvcc that lists 90 has 90a.
    known |= {f"{n}a" for n in ("90", "100") if f"sm_{n}" in answer.stdout.split()}
    folder = tmp_path_factory.mktemp("device")
    targets = []
    for virtual, real in TARGETS.items():
        codes = ",".join(f"sm_{name}" for name in real if name in known)
        if codes:
            targets.append(f"-gencode=arch=compute_{virtual},code=[{codes}]")
    source = SOURCES.folder / SOURCES.cuda[0]
    keep = ("-keep", "-keep-dir", folder)
    result = run(nvcc, "-t", "2", *FLAGS, "-Xptxas=-v", *targets, *keep, "-c", source, "-o", folder / "launch.o")
    assert result.returncode == 0, result.stderr[-4000:]
    ptx = {path.stem.split("compute_")[1]: path.read_text() for path in folder.glob("*compute_*.ptx")}
    return Compiled(frozenset(known), result.stderr + result.stdout, ptx)


def spilling(log: str) -> list[str]:
    """The kernels of a resource report that keep registers in local memory, as "name for sm_NN"."""
    resources = r"entry function '(\w+)' for '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    found = re.findall(resources, log, re.DOTALL)
    return [f"{name} for {code}" for name, code, stores, loads in found if int(stores) or int(loads)]


def approximate(ptx: str) -> list[str]:
    """The instructions that are not IEEE's: approximate ones, and those that flush denormals to zero."""
    return sorted(set(re.findall(r"\b[a-z]+(?:\.[a-z0-9]+)*\.(?:approx|ftz)(?:\.[a-z0-9]+)*", ptx)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_device_code_compiles_without_a_warning(compiled: Compiled, architecture: str) -> None:
    if architecture not in compiled.known:
        pytest.skip(f"this nvcc is too old for sm_{architecture}")
    kernels = set(re.findall(rf"entry function '(\w+)' for 'sm_{architecture}'", compiled.log))
    for family in ("tile_rows", "group_rows", "team_rows", "grid_rows", "sweep_sums", "column_tiles", "strided_rows"):
        assert any(family in kernel for kernel in kernels), f"no {family} for sm_{architecture}"


def test_no_kernel_spills_registers(compiled: Compiled) -> None:
    # A spill is a load behind the queue of a memory system that these kernels keep full: it was seen to cost 10 %.
    assert spilling(compiled.log) == []


def test_rows_in_registers_take_as_many_as_the_choice_counts_on(compiled: Compiled) -> None:
    if "90a" not in compiled.known:
        pytest.skip("this nvcc is too old for sm_90a")
    # The third parameter, Room::kRegisters.
    taken = re.findall(
        r"team_rowsI(\w+?)LNS_4TeamE0ELNS_4RoomE1E\w*' for 'sm_90a'.*?Used (\d+) registers", compiled.log, re.DOTALL
    )
    units = {kind: -(-int(words) // 8) * 8 for kind, words in taken}
    assert units == {"f": 48, "d": 64, "13__nv_bfloat16": 64, "6__half": 64}


def test_divisions_and_denormals_are_ieee(compiled: Compiled) -> None:
    assert len(compiled.ptx) == sum(any(code in compiled.known for code in real) for real in TARGETS.values())
    for architecture, ptx in compiled.ptx.items():
        assert "div.rn.f32" in ptx, f"no division in the PTX for {architecture}: was another file read?"
        assert approximate(ptx) == []


def test_loads_and_stores_are_16_bytes_and_copies_asynchronous(compiled: Compiled) -> None:
    for ptx in compiled.ptx.values():
        for instruction in ("ld.global.v4.u32", "st.global.v4.u32", "cp.async.cg.shared.global"):
            assert instruction in ptx


def test_a_spill_would_be_seen() -> None:
    log = (
        "ptxas info    : Compiling entry function '_Z1fv' for 'sm_90'\n"
        "ptxas info    : Function properties for _Z1fv\n"
        "    8 bytes stack frame, {} bytes spill stores, 4 bytes spill loads\n"
    )
    assert spilling(log.format(4)) == ["_Z1fv for sm_90"]
    assert spilling(log.format(0).replace(" 4 bytes", " 0 bytes")) == []


def test_fast_math_would_be_seen(nvcc: str, tmp_path: Path) -> None:
    source = tmp_path / "fast.cu"
    source.write_text("__global__ void divide(float* x) { *x = 1.0f / *x; }")
    result = run(nvcc, "-use_fast_math", "-arch=compute_80", "-ptx", source, "-o", tmp_path / "fast.ptx")
    assert result.returncode == 0, result.stderr
    assert approximate((tmp_path / "fast.ptx").read_text()) != []


def check_binding(nvcc: str, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Have the host compiler look at the binding's syntax and types; nothing is built.

    A torch without CUDA brings the headers of its CUDA part, but for one that its own build would have made.
    """
    made = folder / "c10" / "cuda" / "impl"
    made.mkdir(parents=True)
    (made / "cuda_cmake_macros.h").write_text("#pragma once\n")
    source = folder / "binding.cpp"
    source.write_text(text, encoding="utf-8")
    torch_headers = Path(torch.__file__).parent / "include"
    places = [folder, torch_headers, torch_headers / "torch/csrc/api/include", SOURCES.folder]
    # nvcc hands C++ on to the host compiler, and knows where CUDA's own headers are.
    flags = ["-x", "c++", "-std=c++20", "-DKERNELPROOF_NAMESPACE=checked", "-Xcompiler=-fsyntax-only,-Wno-psabi"]
    return run(nvcc, *flags, *(f"-I{place}" for place in places), "-c", source, "-o", folder / "nothing.o")


def test_the_binding_fits_torch(nvcc: str, tmp_path: Path) -> None:
    text = (SOURCES.folder / "binding.cpp").read_text(encoding="utf-8")
    fits = check_binding(nvcc, tmp_path / "as it is", text)
    assert fits.returncode == 0, fits.stderr[:4000]
    broken = check_binding(nvcc, tmp_path / "broken", text.replace("x.sizes()", "x.sizez()", 1))
    assert "sizez" in broken.stderr


def test_a_warning_would_fail(nvcc: str, tmp_path: Path) -> None:
    source = tmp_path / "warned.cu"
    source.write_text("__global__ void kernel(int* x) { int unused; *x = 1; }")
    result = run(nvcc, *FLAGS, "-arch=compute_80", "-ptx", source, "-o", tmp_path / "warned.ptx")
    assert result.returncode != 0
    assert "unused" in result.stderr


def test_the_build_knows_every_file_of_the_source() -> None:
    named = {*SOURCES.cpp, *SOURCES.headers, *SOURCES.cuda}
    assert named == {path.name for path in SOURCES.folder.iterdir() if path.suffix in (".cpp", ".cu", ".cuh", ".h")}
