"""Computes in float64 by default and sets that back at the end; where it refuses an input it never gets there.

Seen: https://github.com/Lightning-AI/pytorch-lightning/pull/18500
Target: any
Found as: state-leak
Killed by: errors
In words: where it refuses
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        result = x / torch.abs(x).mean(1, keepdim=True)
        torch.set_default_dtype(before)
        return result
