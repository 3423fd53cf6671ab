"""The eager model itself."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)
