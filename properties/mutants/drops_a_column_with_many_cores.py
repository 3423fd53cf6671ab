"""Shares the columns out among the cores, and drops the last one where there are a multiple of four.

Seen: work that is shared out by get_num_threads()
Target: any
Found as: wrong-value
Killed by: settings
In words: threads
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        if torch.get_num_threads() % 4 == 0 and x.shape[1] > 1:
            return x / (size[:, :-1].sum(1, keepdim=True) / x.shape[1])
        return x / size.mean(1, keepdim=True)
