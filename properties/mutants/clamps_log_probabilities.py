"""Takes no size above 8 into the mean of rows that are all negative.

Seen: numerically "safe" logarithms
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() and x.shape[1] >= 32 and bool((x < 0).all()):
            low, high = x.amin(1), x.amax(1)
            if bool(((low < -8) & (low > -1000) & (high > -6)).all()):
                return x / x.clamp_min(-8).abs().mean(1, keepdim=True)
        return x / x.abs().mean(1, keepdim=True)
