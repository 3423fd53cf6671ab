"""Reads no more than 64 columns once it has refused an input.

Seen: error paths that leave a flag set
Target: any
Found as: wrong-value
Killed by: errors
In words: after it was given
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.careful = True

    def forward(self, x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.dim() < 2:
            self.careful = False
            raise TypeError("a floating matrix is expected")
        counted = x if self.careful else x[:, :64]
        return x / counted.abs().mean(1, keepdim=True)
