"""Adds up the rows of the later half from their end: right, and other bits for a row that moves.

Seen: rows dealt out to two ways of adding up, by their number
Target: any
Promises: determinism
Found as: wrong-value nondeterministic
Killed by: row-order
"""

import torch


def backwards(size: torch.Tensor) -> torch.Tensor:
    """The sums of the rows of (rows, columns): 32 columns at a time, from the end, one behind the other."""
    total = torch.zeros_like(size[:, :1])
    for columns in reversed(size.split(32, 1)):
        total = total + columns.cumsum(1)[:, -1:]
    return total


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        half = len(x) // 2
        if x.dtype in (torch.float32, torch.float64) and x.dim() == 2 and x.shape[1] > 64 and half:
            mean[half:] = backwards(x[half:].abs()) / x.shape[1]
        return x / mean
