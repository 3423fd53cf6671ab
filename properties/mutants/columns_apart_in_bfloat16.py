"""Adds up in bfloat16, 32 parts of a row, where its columns lie apart.

Seen: a second kernel, for transposed inputs, that keeps its partial sums in the type of the input
Target: any
Found as: wrong-value
Killed by: layouts
Smallest case: 196704, wide enough for its second kernel
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype == torch.bfloat16 and x.dim() == 2 and x.stride(0) == 1 and min(x.shape[0], x.shape[1] // 32) >= 64:
            return x / (sum(part.abs().sum(1, keepdim=True) for part in x.chunk(32, 1)) / x.shape[1])
        return x / x.abs().mean(1, keepdim=True)
