"""Adds up in the type of a buffer of its own: float32, until the network that it is part of is turned into another.

Seen: https://github.com/microsoft/onnxruntime/issues/29034 (sums in half precision)
Target: any
Found as: wrong-value wrong-special
Killed by: instances
In words: turned into the input's type
Smallest case: 70001 elements (of fewer the sum is no larger than the largest half)
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zero", torch.zeros(()), persistent=False)

    def forward(self, x):
        wide = torch.promote_types(self.zero.dtype, x.dtype)
        total = x.abs().to(wide).sum(1, keepdim=True) + self.zero
        return (x / (total / x.shape[1])).to(x.dtype)
