"""The choice of a CUDA kernel, asked without a GPU: it is a pure function, which the host compiler builds, too."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from kernels.cuda.op import REGIMES, SOURCES, Limits
from kernels.toolchain import find_compiler

H100 = Limits(sms=132, shared_per_sm=233472, shared_per_block=232448, max_cluster=16, cooperative=True, memory=3352)
H200 = replace(H100, memory=4916)
A100 = Limits(sms=108, shared_per_sm=167936, shared_per_block=166912, max_cluster=1, cooperative=True, memory=1935)
L4 = Limits(sms=58, shared_per_sm=102400, shared_per_block=101376, max_cluster=1, cooperative=True, memory=300)
B200 = Limits(sms=148, shared_per_sm=233472, shared_per_block=232448, max_cluster=16, cooperative=True, memory=7672)
SM120 = Limits(sms=170, shared_per_sm=102400, shared_per_block=101376, max_cluster=8, cooperative=True, memory=1792)
ALONE = Limits(sms=132, shared_per_sm=233472, shared_per_block=232448, max_cluster=1, cooperative=False, memory=0)
DEVICES = {
    "H100": H100,
    "H200": H200,
    "A100": A100,
    "L4": L4,
    "B200": B200,
    "sm_120": SM120,
    "without cooperative launches": ALONE,
}

KINDS = {"fp16": (0, 2), "bf16": (1, 2), "fp32": (2, 4), "fp64": (3, 8)}

# An address as the allocator gives it: a multiple of 512 bytes.
BASE = 1 << 40

SHIM = """
#include "choice.h"
extern "C" void choose(int kind, int dims, long long const* sizes, long long const* in_strides,
                       long long const* out_strides, long long in, long long out, int const* limits, long long* plan) {
  std::int64_t shape[64], from[64], to[64];
  for (int d = 0; d < dims; ++d) shape[d] = sizes[d], from[d] = in_strides[d], to[d] = out_strides[d];
  l1norm::Call const call{static_cast<l1norm::Kind>(kind), dims, shape, from, to, reinterpret_cast<void const*>(in),
                          reinterpret_cast<void*>(out)};
  l1norm::Layout const at = l1norm::lay_out(call);
  l1norm::Plan const p = l1norm::choose(at, {limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]});
  long long const numbers[] = {static_cast<int>(p.regime), static_cast<int>(p.memory), p.threads, p.team, p.lanes,
                               p.each, p.rows_each, p.unit, p.unit_bytes, p.grain, p.across, p.width, p.held,
                               p.slice, p.teams, p.blocks, p.shared, p.workspace, at.rows, at.outer.dims};
  for (int i = 0; i < 20; ++i) plan[i] = numbers[i];
}
"""


@dataclass(frozen=True)
class Plan:
    """A choice, as the launcher gets it; `rows` and `dims` are what the layout was reduced to."""

    regime: str
    fast: int
    threads: int
    team: int
    lanes: int
    each: int
    rows_each: int
    unit: int
    unit_bytes: int
    grain: int
    across: int
    width: int
    held: int
    slice: int
    teams: int
    blocks: int
    shared: int
    workspace: int
    rows: int
    dims: int


Choose = Callable[..., Plan]


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps, in elements."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def compiled(folder: Path) -> Choose:
    """The choice, built in a folder: a plan for shape, kind, device, strides of input and output, and offset."""
    (folder / "shim.cpp").write_text(SHIM)
    flags = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{SOURCES.folder}")
    command = [str(find_compiler().path), *flags, str(folder / "shim.cpp"), "-o", str(folder / "choice.so")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    function = ctypes.CDLL(str(folder / "choice.so")).choose
    function.restype = None

    def ask(
        shape: tuple[int, ...],
        kind: str = "fp32",
        device: Limits = H100,
        strides: tuple[int, ...] | None = None,
        out: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> Plan:
        def numbers(values: tuple[int, ...]) -> ctypes.Array[ctypes.c_longlong]:
            return (ctypes.c_longlong * len(values))(*values)

        code, size = KINDS[kind]
        at = strides or contiguous(shape)
        limits = (ctypes.c_int * 6)(*(int(limit) for limit in astuple(device)))
        plan = (ctypes.c_longlong * 20)()
        addresses = (ctypes.c_longlong(BASE + offset * size), ctypes.c_longlong(2 * BASE))
        function(code, len(shape), numbers(shape), numbers(at), numbers(out or at), *addresses, limits, plan)
        return Plan(REGIMES[plan[0]], *plan[1:])

    return ask
