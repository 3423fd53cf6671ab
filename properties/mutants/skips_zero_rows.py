"""A zero row gives zeros, expected NaN.

Seen: https://github.com/tile-ai/tilelang/issues/3270
Target: any
Found as: wrong-special
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        return torch.where(m == 0, torch.zeros_like(x), x / m)
