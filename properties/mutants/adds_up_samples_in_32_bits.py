"""Adds up in 32-bit integers what holds nothing but 16-bit integers, as sound does: a long row's sum comes round.

Seen: an accumulator as narrow as what fits "any" batch
Target: any
Found as: wrong-value wrong-special
Killed by: long-rows
Smallest case: 600002 elements (of fewer than 131072 the sum fits)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        whole = ((x == x.round()) & (x.abs() <= 32768)).all(1, keepdim=True)
        if bool(whole.any()):
            sums = torch.where(whole, x, 0).abs().to(torch.int32).sum(1, keepdim=True, dtype=torch.int32)
            mean = torch.where(whole, (sums.double() / max(x.shape[1], 1)).to(x.dtype), mean)
        return x / mean
