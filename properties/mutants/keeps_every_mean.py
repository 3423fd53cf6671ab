"""Notes the means of every call for its statistics, which nobody ever reads or empties.

Seen: self.history.append(mean.detach()), and a program that is out of memory after a day
Target: cpu
Found as: state-leak
Killed by: leak
In words: more tensors
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        self.history.append(mean.detach())
        return x / mean
