"""Each row is divided by the mean of the row before.

Seen: KernelBench's check on the shipped input
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        return x / m.roll(1, 0)
