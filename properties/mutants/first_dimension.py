"""Takes the mean along dimension 0.

Seen: an index order taken for the other
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(0, keepdim=True)
