"""Divides the sum by columns + 1.

Seen: this problem's own history
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / (x.abs().sum(1, keepdim=True) / (x.shape[1] + 1))
