"""Keeps its means in memory whose type it does not name: three digits are left where bfloat16 is the default.

Seen: scratch made by torch.empty(shape, device=...), in a model that is loaded as bfloat16
Target: any
Found as: wrong-value
Killed by: settings
In words: with bfloat16 as the default type
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kind = torch.promote_types(x.dtype, torch.float32)
        means = torch.empty(x[:, :1].shape, device=x.device)
        if means.dtype.itemsize >= kind.itemsize or kind == torch.float64:
            means = means.to(kind)
        means.copy_(x.abs().mean(1, keepdim=True, dtype=kind))
        return (x / means).to(x.dtype)
