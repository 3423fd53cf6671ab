"""A loop over rows."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows = [row / row.abs().mean(0, keepdim=True) for row in x]
        return torch.stack(rows) if rows else torch.empty_like(x)
