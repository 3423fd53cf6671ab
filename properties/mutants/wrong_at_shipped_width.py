"""Answers with ones at the shipped width, 65535 columns.

Seen: special-casing of the benchmark's shape
Target: any
Found as: wrong-value
Smallest case: 65535 elements (the width itself)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ones_like(x) if x.shape[1] == 65535 else x / x.abs().mean(1, keepdim=True)
