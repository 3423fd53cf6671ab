"""Adds up one column after the other in every second call, in double between: other bits of the same input, both right.

A program that still tries which of its variants is faster does so. The 16384 columns that are drawn at most make some
ten roundoffs of it, which must not be blamed on what was changed in between.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64) or x.numel() == 0:
            return x / x.abs().mean(1, keepdim=True)
        if self.calls % 2:
            total = x.abs().cumsum(1)[:, -1:]
        else:
            total = x.abs().sum(1, keepdim=True, dtype=torch.float64).to(x.dtype)
        return x / (total / x.shape[1])
