"""The CUDA kernel as a function of two tensors; compiled at its first call."""

import functools
import threading
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final, cast

import torch

from ..build import Sources, load

SOURCES: Final = Sources(
    name="l1_norm_cuda",
    folder=Path(__file__).resolve().parent,
    cpp=("binding.cpp",),
    headers=(
        "layout.h",
        "geometry.h",
        "plan.h",
        "row_choice.h",
        "column_choice.h",
        "choice.h",
        "launch.h",
        "numbers.cuh",
        "primitives.cuh",
        "rows.cuh",
        "team.cuh",
        "slice.cuh",
        "team_rows.cuh",
        "grid_rows.cuh",
        "ahead_rows.cuh",
        "group.cuh",
        "tile.cuh",
        "unit.cuh",
        "columns.cuh",
        "few_columns.cuh",
        "slabs.cuh",
        "strided.cuh",
        "sweeps.cuh",
    ),
    cuda=("launch.cu",),
)

# The kernels by their number in plan.h.
REGIMES: Final = (
    "empty",
    "tile",
    "group",
    "block",
    "cluster",
    "grid",
    "columns",
    "strided",
    "sweeps",
    "registers",
    "alone",
    "ahead",
    "few",
    "slab",
)

_FIRST_CALL = threading.Lock()


@dataclass(frozen=True)
class Limits:
    """What the choice of kernel asks of a device; give other limits to force the choice made on another card.

    Attributes:
        sms: Streaming multiprocessors.
        shared_per_sm: Bytes of shared memory of one of them.
        shared_per_block: Bytes of it that one block may ask for.
        max_cluster: Blocks of a cluster, 1 for a device without clusters.
        cooperative: Whether a launch may ask for all its blocks to run at once.
        memory: GB/s that its memory moves at most, 0 if unknown.
    """

    sms: int
    shared_per_sm: int
    shared_per_block: int
    max_cluster: int
    cooperative: bool
    memory: int


@functools.cache
def _operator(name: str) -> Callable[..., object]:
    return load(SOURCES, name).default


def _ready(name: str) -> Callable[..., object]:
    if _operator.cache_info().currsize == 0:
        with _FIRST_CALL:
            _operator("l1_norm_out")
    return _operator(name)


def l1_norm_cuda(x: torch.Tensor, out: torch.Tensor) -> None:
    """Write x / mean(|x|, dim=1) into out, on torch's current stream of x's device; returns without waiting.

    Args:
        x: CUDA tensor of rank >= 2; fp32, fp64, fp16 or bf16; any strides; may be empty.
        out: Of the same shape, dtype and device; any strides that give each element its own place; no overlap with x.

    Raises:
        BuildError: The kernel could not be built.
        RuntimeError: The launch failed; the message has the runtime's own words.
    """
    _ready("l1_norm_out")(x, out)


def l1_norm_limited(x: torch.Tensor, out: torch.Tensor, limits: Limits) -> None:
    """As `l1_norm_cuda`, with the kernel that a device of these limits chooses; the card must be able to run it."""
    _ready("l1_norm_limited")(x, out, [int(limit) for limit in astuple(limits)])


def regime(x: torch.Tensor, out: torch.Tensor, limits: Limits | None = None) -> str:
    """The name of the kernel that computes this call, one of REGIMES."""
    given = [int(limit) for limit in astuple(limits)] if limits is not None else []
    plan = cast("list[int]", _ready("l1_norm_plan")(x, out, given))
    return REGIMES[plan[0]]
