"""Computes the result and zeroes its input.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: any
Found as: input-modified
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        x.zero_()
        return y
