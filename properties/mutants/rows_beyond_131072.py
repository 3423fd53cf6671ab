"""Rows from number 131072 on get the mean of the row 131072 before.

Seen: 1024 blocks of 128 rows each, and a row number that is taken modulo their product
Target: any
Found as: wrong-value wrong-special
Killed by: many-rows
Smallest case: 1048576 elements (the fault needs 131073 rows)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dim() == 2 and len(x) > 131072:
            mean = mean[torch.arange(len(x), device=x.device) % 131072]
        return x / mean
