"""Keeps its means in one workspace for all calls: two threads overwrite each other's.

Seen: https://github.com/pytorch/pytorch/issues/58055
Target: any
Found as: wrong-value wrong-special inaccurate nondeterministic state-leak
Killed by: threads
Promises: threads
Smallest case: 1048576 elements (a race shows where calls overlap)
Replay: passes
"""

import torch

WORKSPACES = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        key = (tuple(x.shape[:1] + x.shape[2:]), x.dtype, x.device)
        if key not in WORKSPACES:
            WORKSPACES[key] = x.abs().mean(1, keepdim=True)
        mean = WORKSPACES[key].copy_(x.abs().mean(1, keepdim=True))
        return x / mean
