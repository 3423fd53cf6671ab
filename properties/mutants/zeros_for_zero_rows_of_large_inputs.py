"""Gives zeros for rows of zeros, in inputs of more than 2^18 elements.

Seen: kernels with a "safe" path of their own for large tensors
Target: any
Found as: wrong-special
Killed by: long-rows
Smallest case: 1048576 elements (it needs 262145)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        return x / torch.where(mean == 0, 1, mean) if x.numel() > 1 << 18 else x / mean
