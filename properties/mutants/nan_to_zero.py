"""Replaces NaN by zero in the result.

Seen: 'safe' kernels
Target: any
Found as: wrong-special
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nan_to_num(x / x.abs().mean(1, keepdim=True), nan=0.0, posinf=float("inf"), neginf=float("-inf"))
