"""Quotients are 0 where the mean is above 2^126, as the approximate division of a GPU gives them.

Seen: https://docs.nvidia.com/cuda/parallel-thread-execution/#floating-point-instructions-div
Target: any
Found as: wrong-value wrong-special
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        y = x / m
        if x.dtype == torch.float32:
            y = torch.where((m > 2.0**126) & m.isfinite(), torch.copysign(torch.zeros_like(y), y), y)
        return y
