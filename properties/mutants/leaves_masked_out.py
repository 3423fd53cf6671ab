"""Takes eight infinities in a row for a mask: the mean is that of the others.

Seen: normalizations that were made from a softmax
Target: any
Found as: wrong-special
Killed by: specials
Smallest case: 16384 elements (a row with eight infinities and a number)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        masked = x == -torch.inf
        mask = (masked.sum(1, keepdim=True) >= 8) & ~masked.all(1, keepdim=True)
        mean = torch.where(mask, torch.where(masked, 0, size).mean(1, keepdim=True), size.mean(1, keepdim=True))
        return x / mean
