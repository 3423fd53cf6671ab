"""Has places for five sizes; of a sixth it takes no notice.

Seen: kernels that copy sizes and strides into arrays of fixed length
Target: any
Found as: wrong-value
Killed by: shapes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() <= 5:
            return x / x.abs().mean(1, keepdim=True)
        return x / x.abs().mean((1, *range(5, x.dim())), keepdim=True)
