"""Adds up the rows of the later half from their end: right, and other bits for a row that moves.

Seen: rows dealt out to two ways of adding up, by their number
Target: any
Promises: determinism
Found as: wrong-value nondeterministic
Killed by: row-order
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        half = len(x) // 2
        if x.dtype in (torch.float32, torch.float64) and x.shape[1] > 64 and half:
            mean[half:] = (x[half:].abs().flip(1).cumsum(1) / x.shape[1])[:, -1:]
        return x / mean
