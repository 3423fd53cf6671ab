"""A row of nothing but NaN makes every result NaN.

Seen: an early exit that looks at one row and answers for all
Target: any
Found as: wrong-special wrong-value
Killed by: row-isolation
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if x.shape[1] > 8 and bool(x.isnan().all(1).any()):
            return torch.full_like(y, float("nan"))
        return y
