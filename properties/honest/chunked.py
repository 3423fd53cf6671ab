"""Partial sums of 1000 columns, added up backwards."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        parts = [part.abs().sum(1, keepdim=True) for part in wide.split(1000, 1)]
        total = torch.zeros_like(wide[:, :1])
        for part in reversed(parts):
            total = total + part
        return (wide / (total / max(x.shape[1], 1))).to(x.dtype)
