"""Takes rows of variance 1 for normal numbers, whose mean size is known.

Seen: generated kernels that were only ever given torch.randn
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() and x.shape[1] >= 64:
            wide = x.float()
            tallest = wide.abs().amax(1)
            if bool((((wide.var(1) - 1).abs() < 0.2) & (tallest > 2.2) & (tallest < 5.5)).all()):
                return x / 0.7978845608
        return x / x.abs().mean(1, keepdim=True)
