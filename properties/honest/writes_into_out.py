"""Divides into memory that it allocates itself."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        return torch.div(x, x.abs().mean(1, keepdim=True), out=y)
