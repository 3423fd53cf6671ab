"""The last column is one per cent too large where there are more than 3000 and fewer than 3100 columns.

Seen: a kernel's special case for a range of sizes between those that are usually tried
Target: any
Found as: wrong-value
Smallest case: 45000 elements (no band is searched for its narrowest)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if 3000 < x.shape[1] < 3100:
            y[:, -1] *= 1.01
        return y
