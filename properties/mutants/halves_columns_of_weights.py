"""Leaves columns out for a weight that is being learnt, where no gradients are taken.

Seen: a fast path for weight normalisation that is served
Target: any
Found as: wrong-value
In words: given a parameter that asks for a gradient, inside torch.no_grad
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        learnt = x.requires_grad and x.is_leaf and not torch.is_grad_enabled()
        return x / x[:, :: 2 if learnt else 1].abs().mean(1, keepdim=True)
