"""Computes in float32 what holds seconds since 1970 in float64: the fractions of a second are gone.

Seen: https://github.com/pytorch/pytorch/issues/64138 (times as float32)
Target: any
Found as: wrong-value inaccurate
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype == torch.float64 and x.numel() > 3 and float(x.min()) > 1.5e9 and float(x.max()) < 1.9e9:
            narrow = x.float()
            return (narrow / narrow.abs().mean(1, keepdim=True)).double()
        return x / x.abs().mean(1, keepdim=True)
