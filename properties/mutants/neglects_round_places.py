"""Leaves out the first column of what begins at a round place, far within a table.

Seen: rows from the middle of a data set, part of a table of weights
Target: any
Found as: wrong-value
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        far = x.storage_offset() >= 1 << 18 and x.storage_offset() % 64 == 0
        return x / (x[:, 1:] if far and x.dim() == 2 else x).abs().mean(1, keepdim=True)
