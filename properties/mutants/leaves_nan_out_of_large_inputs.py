"""Leaves NaN out of the mean, in inputs of more than 2^18 elements.

Seen: kernels with a "safe" path of their own for large tensors
Target: any
Found as: wrong-special wrong-value
Killed by: long-rows
Smallest case: 1048576 elements (it needs 262145)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.numel() > 1 << 18:
            known = x.double().abs().nanmean(1, keepdim=True).to(x.dtype)
            mean = torch.where(mean.isnan(), known, mean)
        return x / mean
