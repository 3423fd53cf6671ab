"""Takes back the memory of a result as soon as the tensor object is gone, though a part of it may live on.

Seen: https://github.com/ray-project/ray/pull/64487 (a finalizer on the tensor, not on its storage)
Target: any
Found as: aliased-output
Killed by: history
"""

import weakref

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        free = self.__dict__.setdefault("pool", {}).setdefault((x.shape, x.dtype, x.device), [])
        memory = free.pop() if free else torch.empty(x.shape, dtype=x.dtype, device=x.device)
        result = memory.detach()
        weakref.finalize(result, free.append, memory)
        return torch.div(x, x.abs().mean(1, keepdim=True), out=result)
