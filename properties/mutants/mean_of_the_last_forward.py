"""Keeps the mean of a forward for the backward in itself, where a second forward replaces it.

Seen: hand-written gradients that keep tensors on self or on the class, not in the context
Target: any
Promises: autograd
Found as: wrong-gradient
Killed by: autograd
"""

import torch


class _Normalise(torch.autograd.Function):
    mean = None

    @staticmethod
    def forward(ctx, x):
        _Normalise.mean = x.abs().mean(1, keepdim=True)
        ctx.save_for_backward(x)
        return x / _Normalise.mean

    @staticmethod
    def backward(ctx, inflow):
        (x,) = ctx.saved_tensors
        share = (inflow * x).sum(1, keepdim=True) / (_Normalise.mean * x.shape[1])
        return (inflow - share * x.sign()) / _Normalise.mean


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return _Normalise.apply(x)
