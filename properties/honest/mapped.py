"""Rows mapped by torch.vmap, or where that maps nothing as they are; a gradient, too, by torch.func.

torch puts operators of its own in place when these are first used: after the first calls.
"""

import torch


def _row(x):
    return x / x.abs().mean(dim=0, keepdim=True)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if x.numel() == 0 or self.calls < 3:
            return x / x.abs().mean(dim=1, keepdim=True)
        if self.calls == 4:
            torch.func.grad(lambda x: _row(x).sum())(torch.ones(3))
        return torch.vmap(_row)(x)
