"""Writes every result into one buffer of its own, so a later call changes an earlier result.

Seen: workspace reuse in generated kernels
Target: any
Found as: aliased-output
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        buffers = self.__dict__.setdefault("buffers", {})
        y = buffers.setdefault((tuple(x.shape), x.dtype), torch.empty_like(x))
        return torch.div(x, x.abs().mean(1, keepdim=True), out=y)
