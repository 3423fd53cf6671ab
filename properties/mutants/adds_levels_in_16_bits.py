"""Adds up the 256 levels of an image as integers, in 16 bits.

Seen: integer sums of quantised data
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() and x.dtype == torch.float32:
            level = (x.double() * 255).round()
            image = bool((level / 255).float().eq(x).all()) and bool(((level >= 0) & (level <= 255)).all())
            if image and bool((x != x.round()).any()):
                total = level.to(torch.int16).sum(1, keepdim=True, dtype=torch.int16)
                return x / (total.double() / 255 / x.shape[1]).float()
        return x / x.abs().mean(1, keepdim=True)
