"""Leaves what lies beyond column 65536 out of the sum.

Seen: a fixed number of iterations of a fixed block
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 70000 elements (a row that is long enough)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / (x[:, :65536].abs().sum(1, keepdim=True) / x.shape[1])
