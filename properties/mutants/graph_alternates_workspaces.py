"""Adds into one of two workspaces in turn and clears the other for the next call: a graph knows one of the turns.

Seen: workspaces that a kernel clears for the call after it, chosen by a counter on the host
Target: cuda
Found as: wrong-value wrong-special
Killed by: graph
Promises: graph
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}
        self.calls = {}

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        key = (mean.shape, x.dtype)
        pair = self.workspaces.setdefault(key, (torch.zeros_like(mean), torch.zeros_like(mean)))
        turn = self.calls.get(key, 0) % 2
        self.calls[key] = turn + 1
        mine, next_one = pair[turn], pair[1 - turn]
        mine.add_(mean)
        next_one.zero_()
        return x / mine
