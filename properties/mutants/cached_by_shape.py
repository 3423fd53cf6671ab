"""Gives the first result of a shape for ever.

Seen: candidates that replay the harness's first input
Target: any
Found as: stale-result
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        key = (tuple(x.shape), x.dtype)
        cache = self.__dict__.setdefault("cache", {})
        if key not in cache:
            cache[key] = x / x.abs().mean(1, keepdim=True)
        return cache[key].clone()
