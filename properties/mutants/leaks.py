"""Keeps a copy of every result.

Seen: a list for debugging that was left in; on a GPU "out of memory" after an hour
Target: cpu
Found as: state-leak
In words: the process grows by
Killed by: leak
Smallest case: 131072 elements (a leak of less is lost among what an allocator rounds)
"""

import torch


class ModelNew(torch.nn.Module):
    kept = []  # noqa: RUF012

    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        self.kept.append(y.clone())
        return y
