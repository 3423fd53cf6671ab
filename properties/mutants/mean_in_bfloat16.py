"""Keeps the mean in bfloat16 whatever the type.

Seen: autocast inside a kernel
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True).bfloat16().to(x.dtype)
