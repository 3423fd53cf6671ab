"""Leaves NaN out of the mean.

Seen: 'safe' kernels
Target: any
Found as: wrong-special
Killed by: specials
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().nanmean(1, keepdim=True)
