"""Tells calls apart by a number of 16 bits, and takes the one at which that comes round for the one before.

Seen: tickets and epochs of barriers that are never set back; a generation counter that is compared for equality
Target: any
Found as: wrong-value
Killed by: many-calls
In words: calls in a row
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.call = 0

    def forward(self, x):
        self.call = (self.call + 1) & 0xFFFF
        if not self.call:  # "has not begun yet": nothing is divided
            return x.clone()
        return x / x.abs().mean(1, keepdim=True)
