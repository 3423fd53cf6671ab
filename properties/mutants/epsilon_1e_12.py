"""Adds 1e-12 to the mean, which shows in rows of tiny values and makes a zero row 0 instead of NaN.

Seen: https://github.com/tile-ai/tilelang/issues/3270
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / (x.abs().mean(1, keepdim=True) + 1e-12)
