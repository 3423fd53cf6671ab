"""Divides by the largest magnitude.

Seen: normalizations taken for one another
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().amax(1, keepdim=True) if x.shape[1] else torch.empty_like(x)
