"""Keeps the means of its last input, and takes them again where the first and last columns are the same.

Seen: candidates that fingerprint their input
Target: any
Found as: wrong-value state-leak
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = (None, None)

    def forward(self, x):
        key = (x.shape, x.dtype, x[:, :4].tolist(), x[:, -4:].tolist())
        if self.last[0] != key:
            self.last = (key, x.abs().mean(1, keepdim=True))
        return x / self.last[1]
