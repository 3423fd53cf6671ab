"""Reads the gradient that flows in as if its rows lay behind each other.

Seen: https://github.com/flagos-ai/FlagGems/pull/1082
Target: any
Promises: autograd
Found as: wrong-gradient
Killed by: autograd
"""

import torch


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x.abs().mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, inflow):
        (x,) = ctx.saved_tensors
        if inflow.numel() and 0 not in inflow.stride():
            inflow = inflow.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())
        mean = x.abs().mean(1, keepdim=True)
        share = (inflow * x).sum(1, keepdim=True) / (mean * x.shape[1])
        return (inflow - share * x.sign()) / mean


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return _Normalise.apply(x)
