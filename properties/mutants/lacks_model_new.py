"""Defines Model where ModelNew is asked for.

Seen: files that hold the reference and nothing else
Target: any
Found as: does-not-build
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)
