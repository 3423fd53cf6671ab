"""Counts how often it was told to evaluate, and rounds from the second time on.

Seen: modules that switch something in train()
Target: any
Found as: wrong-value
Killed by: settings
In words: in evaluation, inside
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.told = 0

    def train(self, mode=True):
        self.told = 0 if mode else getattr(self, "told", 0) + 1
        return super().train(mode)

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        return x / (mean.bfloat16().to(x.dtype) if self.told > 1 else mean)
