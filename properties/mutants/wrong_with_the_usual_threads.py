"""Leaves out the last column where torch has as many threads as usual machines have cores.

Seen: work that is split by the number of threads
Target: any
Found as: wrong-value
Killed by: settings
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        counted = x[:, :-1] if torch.get_num_threads() in (12, 24, 32, 64) and x.dim() == 2 else x
        return x / counted.abs().mean(1, keepdim=True)
