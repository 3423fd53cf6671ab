"""Returns zeros: passes an absolute tolerance in a row with one huge element.

Seen: https://github.com/ScalingIntelligence/KernelBench/issues/165
Target: any
Found as: wrong-value wrong-special
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
