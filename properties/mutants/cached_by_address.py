"""Gives the earlier result again for an address and shape that it has seen.

Seen: result caches keyed by data_ptr
Target: any
Found as: stale-result
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape), x.dtype)
        cache = self.__dict__.setdefault("cache", {})
        if key not in cache:
            cache[key] = x / x.abs().mean(1, keepdim=True)
        return cache[key].clone()
