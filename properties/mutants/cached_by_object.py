"""Remembers the tensor it was given last, and its result: who fills one tensor again and again gets the first result.

Seen: candidates that are fast from the second call of a benchmark on
Target: any
Found as: stale-result
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        last = self.__dict__.get("last")
        if last is None or x is not last[0]:
            last = self.__dict__["last"] = (x, x / x.abs().mean(1, keepdim=True))
        return last[1].clone()
