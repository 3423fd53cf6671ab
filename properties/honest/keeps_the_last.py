"""Keeps the magnitudes of its last fifty calls to look at: memory that grows at first, and then no more."""

import collections

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque(maxlen=50)

    def forward(self, x):
        self.seen.append(x.abs())
        return x / self.seen[-1].mean(1, keepdim=True)
