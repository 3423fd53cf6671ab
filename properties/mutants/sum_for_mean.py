"""Divides by the sum where the mean belongs: too small by the factor `columns`.

Seen: https://github.com/ScalingIntelligence/KernelBench (generated kernels for this problem)
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().sum(1, keepdim=True)
