"""Leaves its caller's matrix transposed.

Seen: x.t_() where x.t() was meant
Target: any
Found as: input-modified
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if x.dim() == 2:
            x.t_()
        return y
