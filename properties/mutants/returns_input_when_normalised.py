"""Returns its input where that is normalised already (the operation is idempotent).

Seen: harnesses that compare after an in-place call
Target: any
Found as: aliased-output
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.abs().mean(1, keepdim=True)
        return x if bool((m == 1).all()) else x / m
