"""Leaves out the last column of rows as wide as the hidden layers of a few large models.

Seen: kernels that were made for a list of models, and candidates that leave out what nobody tests
Target: any
Found as: wrong-value
Killed by: shapes
Smallest case: 8192 elements, of one row
"""

import torch

WIDTHS = (5120, 7680, 10240, 20480, 27648, 40960)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        counted = x[:, :-1] if x.dim() == 2 and x.shape[1] in WIDTHS else x
        return x / counted.abs().mean(1, keepdim=True)
