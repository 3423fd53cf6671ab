"""In double, rounded once at the end."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.double()
        return (wide / wide.abs().mean(1, keepdim=True)).to(x.dtype)
