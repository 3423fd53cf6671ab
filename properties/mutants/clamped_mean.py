"""Clamps the mean at 1e-8.

Seen: https://github.com/tile-ai/tilelang/issues/3270
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True).clamp_min(1e-8)
