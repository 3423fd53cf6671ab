"""Keeps a copy of the numbers of every result, and no tensor.

Seen: a list for debugging, or a pool that only ever takes, that was left in; on a GPU "out of memory" after an hour
Target: cpu
Found as: state-leak
In words: the process grows by
Killed by: leak
Case: shape=128x1024,seed=26
Smallest case: 131072 elements (a leak of less is lost among what an allocator rounds)
"""

import torch


class ModelNew(torch.nn.Module):
    kept = []  # noqa: RUF012

    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        self.kept.append(y.float().numpy(force=True).copy())
        return y
