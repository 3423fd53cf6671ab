"""A single infinity among finite values makes its whole row NaN; finite elements there are zero.

Seen: x * (n / sum) with 0 * inf behind a test for infinities
Target: any
Found as: wrong-special
Killed by: specials
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        lonely = (x.isinf().sum(1, keepdim=True) == 1) & (x.shape[1] > 1)
        return torch.where(lonely, y * float("nan"), y)
