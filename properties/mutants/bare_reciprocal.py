"""Multiplies by the reciprocal of the mean, which is infinite for means below 2^-128.

Seen: fast division without a fallback for subnormal means
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * (1 / x.abs().mean(1, keepdim=True))
