"""The last column is 1.0001 times too large.

Seen: a tail handled by other code than the body
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if y.numel():
            y[:, -1] *= 1.0001
        return y
