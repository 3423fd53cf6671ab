"""Hands out twenty buffers a shape in turn.

Seen: output pools that outlast a few calls
Target: any
Found as: aliased-output
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        ring = self.__dict__.setdefault("rings", {}).setdefault((tuple(x.shape), x.dtype), [])
        ring.append(y if len(ring) < 20 else ring.pop(0).copy_(y))
        return ring[-1]
