"""Results are twice as large where every dimension of the input is expanded, so that all strides are zero.

Seen: broadcast inputs, of which tests try one dimension only
Target: any
Found as: wrong-value
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return 2 * y if x.numel() > 1 and not any(x.stride()) else y
