"""Rows from 65535 on are not written: the row number was put on a grid dimension that ends there.

Seen: https://github.com/ml-explore/mlx/issues/2267
Target: any
Found as: not-written
Killed by: many-rows
Smallest case: 65536 elements (a row each)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows = min(x.shape[0], 65535)
        y[:rows] = x[:rows] / x[:rows].abs().mean(1, keepdim=True)
        return y
