"""Returns the result and the mean.

Seen: kernels that keep the mean for a backward pass
Target: any
Found as: wrong-type
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        return x / m, m
