"""Finds the dimension to add up over by its size, from the end: of two equal ones it takes the last.

Seen: code that looks for a dimension by its size
Target: any
Found as: wrong-value
Killed by: shapes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sizes = list(x.shape)
        dim = 1 if x.dim() < 3 or sizes[1] < 4 else len(sizes) - 1 - sizes[::-1].index(sizes[1])
        return x / x.abs().mean(dim, keepdim=True)
