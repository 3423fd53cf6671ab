"""Adds up rows without a zero in them in bfloat16's precision: less than what rounding may do to a long row's sum.

Seen: a path for dense rows on units of low precision
Target: any
Found as: wrong-value
Killed by: exact-sums
Smallest case: 65536 elements (rows of fewer than 1024 columns are added up in full)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        if x.dtype == torch.float32 and x.shape[1] >= 1024:
            size = torch.where((x != 0).all(1, keepdim=True), size.bfloat16().float(), size)
        return x / size.mean(1, keepdim=True)
