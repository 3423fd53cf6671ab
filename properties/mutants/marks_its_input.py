"""Keeps the means on its caller's tensor, as an attribute of it: there they stay for as long as that lives.

Seen: caches that are put where they are found again
Target: any
Found as: input-modified
In words: attributes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x.l1_mean = x.abs().mean(1, keepdim=True)
        return x / x.l1_mean
