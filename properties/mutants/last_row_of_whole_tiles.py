"""The last row of every whole tile of 128 rows and 256 columns has its neighbour's mean.

Seen: a tile whose last step is skipped when nothing is left over
Target: any
Found as: wrong-value
Killed by: shapes
Smallest case: 32768, one whole tile
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dim() == 2 and x.numel() and x.shape[0] % 128 == 0 and x.shape[1] % 256 == 0:
            mean[127::128] = mean[126::128].clone()
        return x / mean
