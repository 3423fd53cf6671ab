"""Forgets every second column of inputs of four dimensions and a quarter of a million elements: images, not matrices.

Seen: a path of its own for channels-last and large images that no test reaches
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 1048576 elements (it needs 262144)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        step = 2 if x.dim() == 4 and x.numel() >= 1 << 18 else 1
        return x / x[:, ::step].abs().mean(1, keepdim=True)
