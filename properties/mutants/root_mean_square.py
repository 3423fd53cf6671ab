"""Divides by the root mean square, as RMSNorm does.

Seen: normalizations taken for one another
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.square().mean(1, keepdim=True).sqrt()
