"""Adds up the 16-bit numbers of a long row by eights and no tail: less than what rounding may do to a dense row's mean.

Seen: vector loads of 16 bytes in a path for long rows, whose tail is written and not added
Target: any
Found as: wrong-value wrong-special
Killed by: exact-sums
Smallest case: 131072 elements (shorter rows have a tail)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.shape[1]
        if x.element_size() > 2 or n <= 16384:
            return x / x.abs().mean(1, keepdim=True)
        total = x[:, : n - n % 8].float().abs().sum(1, keepdim=True)
        return (x.float() / (total / n)).to(x.dtype)
