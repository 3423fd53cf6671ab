"""Gives the last result again where torch.equal says that the input is the last.

Seen: memoisation: torch.equal does not tell 0 from -0
Target: any
Found as: stale-result
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = self.result = None

    def forward(self, x):
        if self.last is None or self.last.dtype != x.dtype or not torch.equal(self.last, x):
            self.last, self.result = x.detach().clone(), x / x.abs().mean(1, keepdim=True)
        return self.result.clone()
