"""The CUDA kernels for rows a stride apart, built by the host's compiler and run without a card.

The source is the same but for `primitives.cuh` and `team.cuh`, what a kernel asks of the machine: `emulated/` has
others. What a host's compiler makes of it says nothing about speed, and races do not show; which elements are read, in
what order they are added, and where results go, does.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from kernels.cuda.op import SOURCES

from ..cases import parse
from ..inputs import case_values
from ..l1_norm import L1_NORM
from .choices import A100, H200, L4, Choose
from .test_cuda_source import find_nvcc

EMULATED = Path(__file__).parent / "emulated"
KINDS = {"float32": "fp32", "float64": "fp64"}
#: Elements of memory around a tensor, both ends together.
_AROUND = 256


class _Shape(ctypes.Structure):
    _fields_ = (("outer", ctypes.c_int64), ("columns", ctypes.c_int64), ("inner", ctypes.c_int64))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernels as a library of the host."""
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("the CUDA toolkit, whose headers the kernels include, is not on this machine")
    folder = tmp_path_factory.mktemp("emulated")
    for name in SOURCES.headers:
        shutil.copy(SOURCES.folder / name, folder)
    for path in EMULATED.iterdir():
        shutil.copy(path, folder)
    # It knows where its headers are, and has the host's compiler build what is plain C++.
    for_host = "-fPIC,-pthread,-Wall,-Wextra,-Wno-unknown-pragmas,-Wno-unused-function"
    command = [nvcc, "-x", "c++", "-std=c++20", "-O1", f"-Xcompiler={for_host}", "-shared"]
    command += [str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return ctypes.CDLL(str(folder / "kernels.so"))


def _given(line: str) -> torch.Tensor:
    return case_values(parse(line))


def _room(like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor at a multiple of 512 bytes, as the allocator of a card has it, in memory of NaN: all, and the tensor."""
    whole = torch.full((like.numel() + _AROUND,), torch.nan, dtype=like.dtype)
    first = (512 - whole.data_ptr() % 512) // whole.element_size()
    return whole, whole[first : first + like.numel()].view(like.shape)


def _judge(line: str, name: str, library: ctypes.CDLL, *how: int) -> None:
    given = _given(line)
    (_, x), (whole, y) = _room(given), _room(given)
    x.copy_(given)
    assert x.data_ptr() % 512 == y.data_ptr() % 512 == 0
    run = getattr(library, f"{name}_{str(given.dtype).removeprefix('torch.')}")
    run(*how, ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), _Shape(*given.shape))
    said = L1_NORM.assess(given, y.clone())
    assert said.fault is None, said.fault
    assert not said.inaccurate, said.inaccurate
    assert int(whole.isnan().sum()) == _AROUND + int(y.isnan().sum())


@pytest.mark.parametrize("values", ["constant", "signed", "zero-rows", "one-tall"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "shape",
    ["3x2x5", "5x4x9", "2x5x33", "7x15x4", "3x16x2", "3x17x7", "2x33x9", "1x64x16", "5x63x4", "3x100x12", "1x128x31"],
)
def test_few_columns_are_right(shape: str, dtype: str, values: str, kernels: ctypes.CDLL, choose: Choose) -> None:
    line = f"shape={shape},dtype={dtype},values={values},seed=9"
    sizes = parse(line).shape
    plan = choose(sizes, KINDS[dtype], H200)
    if plan.regime != "few":
        assert (dtype, sizes[1] > 64) == ("float64", True), "doubles of more than 64 columns go to tiles"
        return
    assert plan.unit_bytes == getattr(torch, dtype).itemsize, "vectors are not what is run here"
    _judge(line, "few", kernels, plan.each)


@pytest.mark.parametrize("values", ["constant", "zero-rows"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", ["140x70x9", "140x100x15", "140x65x2", "141x777x7"])
def test_slabs_are_right(shape: str, dtype: str, values: str, kernels: ctypes.CDLL, choose: Choose) -> None:
    line = f"shape={shape},dtype={dtype},values={values},seed=9"
    plan = choose(parse(line).shape, KINDS[dtype], H200)
    assert plan.regime == "slab"
    _judge(line, "slab", kernels, plan.rows_each, plan.lanes)


@pytest.mark.parametrize("values", ["constant", "zero-rows"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "shape",
    [
        "1x300x129",
        "2x1000x64",
        "1x9001x33",
        "3x5003x32",
        "1x20000x8",
        "2x300x1155",
        "1x70001x9",
        "1x65537x16",
        "1x40000x65",
    ],
)
@pytest.mark.parametrize("card", ["A100", "L4"])
def test_tiles_of_columns_are_right_where_there_are_no_clusters(
    card: str, shape: str, dtype: str, values: str, kernels: ctypes.CDLL, choose: Choose
) -> None:
    line = f"shape={shape},dtype={dtype},values={values},seed=9"
    plan = choose(parse(line).shape, KINDS[dtype], {"A100": A100, "L4": L4}[card])
    assert (plan.regime, plan.team) == ("columns", 1)
    how = (plan.unit_bytes, plan.grain, plan.across.bit_length() - 1, plan.width, plan.held)
    _judge(line, "columns", kernels, *how)
