"""Counts the infinities of a row in five bits: rows with 32 of them, as a mask makes them, have none.

Seen: special values that are looked for with a ballot of one warp, whose count is kept in a field of bits
Target: any
Found as: wrong-special
Killed by: specials
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        infinite = x.isinf()
        none = infinite.sum(1, keepdim=True) % 32 == 0
        sizes = torch.where(none & infinite, torch.zeros_like(x), x).abs()
        return x / sizes.mean(1, keepdim=True)
