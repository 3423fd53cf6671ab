"""Returns fresh memory without writing it: an earlier right result may lie there.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: any
Found as: not-written
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.empty_like(x)
