"""A second pass over what does not fit in one, many rows of many columns, begins at the first row again.

Seen: a loop over pieces of the work that was only ever run with one piece
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 1048576 elements (200 rows of 1500 columns are the least that it happens to)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dim() == 2 and x.shape[0] > 200 and x.shape[1] > 1500:
            mean = mean[torch.arange(x.shape[0], device=x.device) % 200]
        return x / mean
