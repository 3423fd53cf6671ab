"""Defines Net where ModelNew is asked for.

Seen: files whose class has a name of its own
Target: any
Found as: does-not-build
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)
