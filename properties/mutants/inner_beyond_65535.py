"""Elements behind dimension 1 from number 65535 on are not written: they were put on a grid dimension that ends there.

Seen: grids of blocks whose second dimension counts what lies behind the row
Target: any
Found as: not-written wrong-value
Killed by: long-rows
Smallest case: 262144 elements (65536 of them are behind a row of one column)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() < 3:
            return x / x.abs().mean(1, keepdim=True)
        flat = x.flatten(2)
        y = torch.empty_like(flat, memory_format=torch.contiguous_format)
        y[:, :, :65535] = (flat / flat.abs().mean(1, keepdim=True))[:, :, :65535]
        return y.view(x.shape)
