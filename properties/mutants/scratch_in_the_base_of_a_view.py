"""Takes what its input is a view of for its input, and sums of that.

Seen: code that looks for `_base` to find the memory behind a view, right where the view is all of it in another order
Target: any
Found as: wrong-value
Killed by: settings
In words: given a view of another tensor
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        base = x._base if x._base is not None else x
        return x / (base.abs().sum() / x.numel() if base is not x else x.abs().mean(1, keepdim=True))
