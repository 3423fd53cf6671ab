"""Multiplies by a reciprocal of 12 bits, as a hardware estimate without a Newton step gives.

Seen: rcp.approx, rcpps
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype not in (torch.float32, torch.float64):
            return x / x.abs().mean(1, keepdim=True)
        r = (1 / x.abs().mean(1, keepdim=True)).float()
        return x * (r.view(torch.int32) & ~0xFFF).view(torch.float32).to(x.dtype)
