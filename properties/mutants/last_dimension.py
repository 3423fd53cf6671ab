"""Takes the mean along the last dimension instead of dimension 1.

Seen: kernels that flatten to (rows, last dimension)
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(-1, keepdim=True)
