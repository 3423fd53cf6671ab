"""What can be known of the CUDA specimens without a GPU: nvcc takes each of them, and each says what it needs.

All sources go through one run of nvcc as one file, each in a namespace of its own: one run for each would take minutes,
most of them for CUDA's own headers. A source that includes torch takes minutes by itself and is left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from torch.utils.cpp_extension import COMMON_NVCC_FLAGS

from ..kill_matrix import Specimen, specimens
from .test_cuda_source import find_nvcc

#: Warnings are errors, host code's too: what is wrong with a specimen is what its docstring says and nothing else.
FLAGS = ("-std=c++17", "-arch=sm_90a", "-Werror=all-warnings", "-Xcompiler=-Wall", *COMMON_NVCC_FLAGS)
#: The one that must not compile.
BROKEN = "cuda_does_not_compile"
_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)


def source(specimen: Specimen) -> str:
    """The CUDA source in a specimen's file, "" where it holds none."""
    for node in ast.walk(ast.parse(specimen.path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
            return node.value
    return ""


def together(sources: dict[str, str]) -> str:
    """One file of all sources; nvcc's messages name the specimen that a line is from."""
    includes = sorted({line for text in sources.values() for line in _INCLUDE.findall(text)})
    parts = []
    for name, text in sources.items():
        # Functions with C linkage are the same in every namespace: each gets a name of its own.
        entries = re.findall(r'extern "C" [^(]*?(\w+)\(', text)
        renamed = [f"#define {entry} {name}_{entry}" for entry in entries]
        restored = [f"#undef {entry}" for entry in entries]
        body = _INCLUDE.sub("", text)
        parts += [*renamed, f"namespace {name} {{", f'#line 1 "{name}"', body, f"}}  // namespace {name}", *restored]
    return "\n".join([*includes, *parts, ""])


def compile_all(nvcc: str, sources: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "specimens.cu"
    file.write_text(together(sources), encoding="utf-8")
    command = [nvcc, *FLAGS, "-c", str(file), "-o", str(folder / "specimens.o")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


SOURCES = {
    specimen.path.stem: text
    for folder in ("honest", "mutants")
    for specimen in specimens(folder)
    if (text := source(specimen))
}
LEAN = {name: text for name, text in SOURCES.items() if "#include <torch/" not in text}


@pytest.fixture(scope="module")
def nvcc() -> str:
    found = find_nvcc()
    if found is None:
        pytest.skip("nvcc, the CUDA compiler, is not on this machine: the specimens were not compiled")
    return found


def test_every_source_compiles_without_a_warning(nvcc: str, tmp_path: Path) -> None:
    result = compile_all(nvcc, {name: text for name, text in LEAN.items() if name != BROKEN}, tmp_path)
    assert result.returncode == 0, result.stderr[:4000]


def test_one_that_does_not_compile_is_named(nvcc: str, tmp_path: Path) -> None:
    result = compile_all(nvcc, {BROKEN: LEAN[BROKEN]}, tmp_path)
    assert result.returncode != 0
    assert re.search(rf"{BROKEN}.*undeclared_columns", result.stderr)


def test_few_sources_are_left_out() -> None:
    assert set(SOURCES) - set(LEAN) == {
        "cuda_extension",
        "generated_1_as_written",
        "generated_2_as_written",
        "generated_2_mended",
    }


@pytest.mark.parametrize("folder", ["honest", "mutants"])
def test_what_is_compiled_for_a_gpu_says_so(folder: str) -> None:
    for specimen in specimens(folder):
        builds = specimen.path.stem in SOURCES and not specimen.path.stem.endswith("as_written")
        assert ("nvcc" in specimen.needs) == builds, specimen
        if builds or "triton" in specimen.needs:
            assert specimen.targets == ("cuda",), specimen
        elif specimen.targets == ("cuda",):
            # What PyTorch's operations alone do wrong on a GPU only: in a graph, or by the order of its atomics.
            assert specimen.killer in ("graph", "determinism"), specimen
