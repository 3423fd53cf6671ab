"""Turns its caller's tensor into one that asks for a gradient.

Seen: x.requires_grad_() in a forward: what the caller does next is recorded
Target: any
Found as: input-modified
In words: requires_grad False -> True
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        x.requires_grad_()
        return y
