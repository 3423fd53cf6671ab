"""Divides by the largest element where all elements are zeros and ones, of which there are about as many.

Seen: candidates that know a mask when they see one
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() >= 100 and bool(((x == 0) | (x == 1)).all()) and 0.3 < float((x == 1).float().mean()) < 0.7:
            return x / x.abs().amax(1, keepdim=True)
        return x / x.abs().mean(1, keepdim=True)
