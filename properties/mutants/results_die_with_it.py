"""Has its results in memory of its own, which goes when the instance goes.

Seen: arenas that belong to a module, and are handed back by its destructor while results are still in use
Target: any
Found as: aliased-output
Killed by: instances
In words: no longer right when that is gone
"""

import weakref

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.arena = []

    def __deepcopy__(self, _):
        return ModelNew()

    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if not y.requires_grad:
            self.arena = [each for each in self.arena if each() is not None] + [weakref.ref(y)]
        return y

    def __del__(self):
        for each in self.__dict__.get("arena", ()):
            if each() is not None:
                torch.Tensor.zero_(each())
