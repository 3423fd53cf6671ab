"""Takes one mean for all of a tensor of more than two million elements that is channels-last.

Seen: ways of their own for layouts, from a size on
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 3000000 elements, it is right below
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
        if last and x.numel() > 2_000_000:
            return x / x.abs().mean()
        return x / x.abs().mean(1, keepdim=True)
