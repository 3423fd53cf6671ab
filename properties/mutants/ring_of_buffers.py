"""Hands out 200 buffers a shape in turn: the first result is written over by the 201st call.

Seen: output pools that outlast a harness's number of calls
Target: cpu
Found as: aliased-output
Killed by: leak
Smallest case: 131072 elements (a leak of less is lost among what an allocator rounds)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        ring = self.__dict__.setdefault("rings", {}).setdefault((tuple(x.shape), x.dtype), [])
        ring.append(y if len(ring) < 200 else ring.pop(0).copy_(y))
        return ring[-1]
