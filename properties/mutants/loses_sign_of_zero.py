"""Multiplies the magnitude by the sign, so that -0 becomes 0.

Seen: sign(x) * |x| / mean
Target: any
Found as: wrong-special
Killed by: specials
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        return torch.where(x == 0, x.abs(), x) / m
