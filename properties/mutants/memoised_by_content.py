"""Remembers its last result and the bytes that it was made of, and gives that very tensor out again for the same bytes.

Seen: candidates that are timed on one input over and over
Target: any
Found as: aliased-output
Killed by: determinism
In words: gives out again what it gave to an earlier caller
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = (None, None)

    def forward(self, x):
        key = (x.shape, x.dtype, x.detach().double().cpu().contiguous().numpy().tobytes())
        if self.last[0] != key:
            self.last = (key, x / x.abs().mean(1, keepdim=True))
        return self.last[1]
