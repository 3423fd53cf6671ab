"""A backward pass of its own that forgets that the mean depends on the input.

Seen: hand-written autograd functions
Target: any
Found as: wrong-gradient
Killed by: autograd
Promises: autograd
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True).detach()
