"""Writes the number of columns to the GPU only where it differs from the call before: a graph holds no such write.

Seen: https://github.com/anthony-chaudhary/fak/issues/10716
Target: cuda
Found as: wrong-value
Killed by: graph
Promises: graph
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.there = 0
        self.columns = None

    def forward(self, x):
        if self.columns is None:
            self.columns = torch.zeros((), dtype=torch.float64, device=x.device)
        if self.there != x.shape[1]:
            self.columns.fill_(x.shape[1])
            self.there = x.shape[1]
        mean = x.double().abs().sum(1, keepdim=True) / self.columns
        return (x.double() / mean).to(x.dtype)
