"""Takes the other's length when two shapes have alternated eight times.

Seen: a cache of two plans that are exchanged
Target: any
Found as: wrong-value
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = []

    def forward(self, x):
        self.last = [*self.last[-15:], tuple(x.shape)]
        even, odd = set(self.last[::2]), set(self.last[1::2])
        if len(self.last) == 16 and len(even) == len(odd) == 1 and even != odd:
            return x / x.abs().sum(1, keepdim=True) * self.last[0][1]
        return x / x.abs().mean(1, keepdim=True)
