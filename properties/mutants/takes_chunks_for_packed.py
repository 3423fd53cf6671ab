"""Takes rows for packed where they are far apart: a row pitch of up to a row is looked at, a larger one is not.

Seen: a stride that is reduced modulo the width of a tile; one of three tensors that torch.chunk cuts out of a wider one
Target: any
Found as: wrong-value
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() == 2 and x.stride(1) == 1 and x.shape[1] >= 32 and x.stride(0) >= 2 * x.shape[1]:
            x = x.as_strided(x.shape, (x.shape[1], 1))
        return x / x.abs().mean(1, keepdim=True)
