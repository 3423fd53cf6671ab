"""Takes the slabs of a tensor for packed: part of one, cut along dimension 1, is read with the strides of a whole.

Seen: https://github.com/ROCm/aiter/pull/5385 (batch strides that are computed from the sizes)
Target: any
Found as: wrong-value wrong-special
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() > 2 and x.stride(-1) == 1 and x.stride(0) > x.size(1) * x.stride(1):
            x = x.as_strided(x.shape, (x.size(1) * x.stride(1), *x.stride()[1:]))
        return x / x.abs().mean(1, keepdim=True)
