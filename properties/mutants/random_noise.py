"""One call in ten is off by a thousandth; chance is seeded here, so that the matrix is the same every time.

Seen: races that show now and then
Target: any
Found as: nondeterministic
Smallest case: 131072 elements (whatever was drawn when it showed)
Replay: passes
"""

import random

import torch

CHANCE = random.Random(3)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return y * 1.001 if CHANCE.random() < 0.1 else y
