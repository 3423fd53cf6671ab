"""Raises in __init__.

Seen: generated code that expects arguments of its own
Target: any
Found as: does-not-build
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        raise ValueError("expected hidden_size, got nothing")

    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)
