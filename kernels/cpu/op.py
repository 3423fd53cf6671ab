"""The CPU kernel as a function of two tensors; compiled at its first call."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import torch

from ..build import Sources, load

SOURCES: Final = Sources(
    name="l1_norm_cpu",
    folder=Path(__file__).resolve().parent,
    cpp=("binding.cpp",),
    headers=("l1_norm.h", "pages.h", "simd.h"),
)

# Bytes from which fresh memory asks for huge pages. glibc gives every allocation above 32 MiB a mapping of its own,
# which goes back to the system when it is freed: there the request outlives nothing.
HUGE_PAGE_THRESHOLD: Final = 64 << 20

_FIRST_CALL = threading.Lock()


@functools.cache
def _operator(name: str) -> Callable[..., None]:
    return cast("Callable[..., None]", load(SOURCES, name).default)


def _ready(name: str) -> Callable[..., None]:
    if _operator.cache_info().currsize == 0:
        with _FIRST_CALL:
            return _operator(name)
    return _operator(name)


def empty_like(x: torch.Tensor) -> torch.Tensor:
    """As torch.empty_like, in huge pages where it is large: writing it for the first time takes half as long or less.

    Raises:
        BuildError: The kernel could not be built.
    """
    fresh = torch.empty_like(x)
    if fresh.nbytes >= HUGE_PAGE_THRESHOLD:
        _ready("prefer_huge_pages")(fresh)
    return fresh


def l1_norm_cpu(x: torch.Tensor, out: torch.Tensor) -> None:
    """Write x / mean(|x|, dim=1) into out.

    Args:
        x: CPU tensor of rank >= 2, not empty; fp32, fp64, fp16 or bf16; any strides.
        out: Of the same shape and dtype; any strides that give each element its own place; no overlap with x.

    Raises:
        BuildError: The kernel could not be built.
    """
    _ready("l1_norm_out")(x, out)
