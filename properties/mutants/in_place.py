"""Divides its input in place and returns it.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: any
Found as: input-modified
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.div_(x.abs().mean(1, keepdim=True))
