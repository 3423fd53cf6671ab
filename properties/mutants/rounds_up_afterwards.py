"""Is right itself, and leaves the processor rounding up.

Seen: interval arithmetic and quantisers that set the rounding mode and forget it
Target: cpu
Found as: state-leak
In words: rounding: to nearest -> up
"""

import ctypes
import platform

import torch

_UPWARD = 0x400000 if platform.machine() == "aarch64" else 0x800  # FE_UPWARD of fenv.h


class ModelNew(torch.nn.Module):
    def forward(self, x):
        libm = ctypes.CDLL("libm.so.6")
        libm.fesetround(0)
        y = x / x.abs().mean(1, keepdim=True)
        libm.fesetround(_UPWARD)
        return y
