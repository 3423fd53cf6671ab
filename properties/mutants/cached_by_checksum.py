"""Gives a result again for an input of the same sums and corners as the last one: elements may have changed places.

Seen: candidates that fingerprint their input
Target: any
Found as: stale-result state-leak
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = (None, None)

    def forward(self, x):
        if x.numel() == 0:
            return torch.empty_like(x)
        flat = x.reshape(-1).double()
        sums = (flat.sum(), flat.abs().sum(), flat.square().sum(), flat[0], flat[-1])
        key = (x.shape, x.dtype, *(round(float(each), 6) if each.isfinite() else None for each in sums))
        if self.last[0] != key or None in key:
            self.last = (key, x / x.abs().mean(1, keepdim=True))
        return self.last[1].clone()
