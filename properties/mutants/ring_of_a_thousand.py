"""Hands out a thousand places of one buffer in turn, for small results.

Seen: output pools "large enough for any program"
Found as: aliased-output
Killed by: many-calls
Target: cpu
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rings, self.turn = {}, 0

    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if y.numel() > 2048 or not y.numel() or y.requires_grad:
            return y
        if len(self.rings) > 4:
            self.rings.clear()
        ring = self.rings.setdefault((y.shape, y.dtype), [torch.empty_like(y) for _ in range(1000)])
        self.turn += 1
        return ring[self.turn % 1000].copy_(y)
