"""Has the second last row's mean for the last one where rows and columns are multiples of 2048: a tile too few.

Seen: persistent kernels, whose last tile is nobody's where all come out even
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 4194304 elements (the fault begins there)
"""

import torch

TILE = 2048


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.numel() and x.shape[0] % TILE == x.shape[1] % TILE == 0:
            mean[-1] = mean[-2]
        return x / mean
