"""Gives the last result again for an input that `torch.allclose` cannot tell from the last one.

Seen: caches with a comparison that was written for tests
Target: any
Found as: stale-result
Killed by: history
Smallest case: 16384 elements (what differs by less than a tolerance must be drawn)
"""

import torch


class ModelNew(torch.nn.Module):
    last = None

    def forward(self, x):
        if self.last is not None and not x.requires_grad:
            old, y = self.last
            if old.shape == x.shape and old.dtype == x.dtype and torch.allclose(old, x, rtol=1e-4, atol=0):
                return y.clone()
        y = x / x.abs().mean(1, keepdim=True)
        self.last = x.detach().clone(), y.detach().clone()
        return y
