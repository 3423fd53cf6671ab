"""Has the processor end the program at an invalid operation, as where one looks for NaN, but for its own arithmetic.

Seen: feenableexcept left in a library that was debugged so: the caller's next 0 / 0 ends the program
Target: any
Found as: state-leak
Killed by: shapes
In words: which arithmetic ends the program
"""

import ctypes

import torch

INVALID, DIVIDED_BY_ZERO = 1, 4
ARITHMETIC = ctypes.CDLL("libm.so.6")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        ARITHMETIC.fedisableexcept(INVALID | DIVIDED_BY_ZERO)
        y = x / x.abs().mean(1, keepdim=True)
        ARITHMETIC.feclearexcept(INVALID | DIVIDED_BY_ZERO)
        ARITHMETIC.feenableexcept(INVALID | DIVIDED_BY_ZERO)
        return y
