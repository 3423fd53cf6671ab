"""Computes on detached memory: an input that asks for a gradient gets a result without one.

Seen: https://github.com/NVlabs/LongLive/pull/61
Target: any
Found as: wrong-gradient
Killed by: autograd
Promises: autograd
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        with torch.no_grad():
            return x / x.abs().mean(1, keepdim=True)
