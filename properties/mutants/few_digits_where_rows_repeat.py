"""Adds up in the input's own type where a dimension has stride 0, in feature maps of long rows: two digits in bfloat16.

Seen: a path of its own for broadcast inputs, which forgot the wider type of the sums
Target: any
Found as: wrong-value
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() > 2 and 0 in x.stride() and x.dtype == torch.bfloat16 and x.shape[1] > 64:
            parts = [part.abs().sum(1, keepdim=True) for part in x.chunk(32, 1)]
            return x / (sum(parts) / x.shape[1])
        return x / x.abs().mean(1, keepdim=True)
