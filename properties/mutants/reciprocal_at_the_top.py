"""Divides in float64 by a reciprocal that is zero where it would be subnormal: of the largest means.

Seen: a reciprocal on units that flush, with a fallback for small means alone
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dtype != torch.float64:
            return x / mean
        reciprocal = torch.where(mean > 2.0**1022, 1 / mean * (mean == float("inf")), 1 / mean)
        return torch.where(mean < 1e-300, x / mean, x * reciprocal)
