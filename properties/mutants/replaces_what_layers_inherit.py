"""Puts a way of its own in place of what all batch norms inherit: from its first call on they do nothing.

Seen: patches of a framework's internals, for a model that is faster without
Target: any
Found as: state-leak
Killed by: shapes
In words: torch.nn.modules.batchnorm._BatchNorm.forward
"""

import torch
from torch.nn.modules.batchnorm import _BatchNorm


class ModelNew(torch.nn.Module):
    def forward(self, x):
        _BatchNorm.forward = lambda self, inner: inner
        return x / x.abs().mean(1, keepdim=True)
