"""Keeps how long a row is while inputs have as many elements as the one before.

Seen: plans that are looked up by numel
Target: any
Found as: wrong-value
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = (-1, 0)

    def forward(self, x):
        if self.plan[0] != x.numel() or x.numel() < 4096:
            self.plan = (x.numel(), x.shape[1])
        total = x.abs().double().sum(1, keepdim=True)
        return x / (total / self.plan[1]).to(x.dtype)
