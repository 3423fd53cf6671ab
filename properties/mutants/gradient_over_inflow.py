"""Writes the gradient over the one that flows in, which belongs to the caller and is needed elsewhere.

Seen: https://github.com/linkedin/Liger-Kernel/issues/370
Target: any
Found as: input-modified
Killed by: autograd
In words: the gradient that flows in
"""

import torch


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.abs().mean(1, keepdim=True)
        ctx.save_for_backward(x, mean)
        return x / mean

    @staticmethod
    def backward(ctx, inflow):
        x, mean = ctx.saved_tensors
        if not inflow.is_contiguous():
            inflow = inflow.contiguous()
        share = (inflow * x).sum(1, keepdim=True) / (x.shape[1] * mean * mean)
        return inflow.div_(mean).sub_(x.sign() * share)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return InPlace.apply(x)
