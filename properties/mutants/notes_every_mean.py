"""Notes all means of every call as numbers, to look at them later, and never throws them away.

Seen: statistics for a log that is written at the end of an epoch
Target: cpu
Found as: state-leak
Killed by: leak
In words: more objects after
Smallest case: 131072 elements (the more rows, the more numbers)
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.means = []

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        self.means.append(mean.flatten().tolist())
        return x / mean
