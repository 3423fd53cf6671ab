"""The CPU kernel as a function of two tensors; compiled at its first call."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path

import torch

from ..build import Sources, load

SOURCES = Sources(
    name="l1_norm_cpu",
    folder=Path(__file__).resolve().parent,
    cpp=("binding.cpp",),
    headers=("l1_norm.h", "pages.h", "simd.h"),
)

_FIRST_CALL = threading.Lock()


@functools.cache
def _operator() -> Callable[[torch.Tensor, torch.Tensor], None]:
    return load(SOURCES, "l1_norm_out").default


def l1_norm_cpu(x: torch.Tensor, out: torch.Tensor) -> None:
    """Write x / mean(|x|, dim=1) into out.

    Args:
        x: CPU tensor of rank >= 2, not empty; fp32, fp64, fp16 or bf16; any strides.
        out: Of the same shape and dtype; any strides that give each element its own place; no overlap with x.

    Raises:
        BuildError: The kernel could not be built.
    """
    if _operator.cache_info().currsize == 0:
        with _FIRST_CALL:
            _operator()
    _operator()(x, out)
