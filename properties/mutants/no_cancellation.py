"""Computes x / |x| * |x| / mean, which is NaN for zeros.

Seen: sign(x) as x / |x|
Target: any
Found as: wrong-value wrong-special
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs() * (x.abs() / x.abs().mean(1, keepdim=True))
