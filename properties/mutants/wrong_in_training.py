"""Goes another way forward where a gradient is asked for, the mean of every second column; what flows back is right.

Seen: kernels of their own for training, of which tests look at the gradient alone
Target: any
Found as: wrong-value wrong-special
Killed by: autograd
In words: where a gradient is asked for
"""

import torch


class Trained(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x[:, ::2].abs().mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, inflow):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(x / x.abs().mean(1, keepdim=True), x, inflow)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Trained.apply(x) if x.requires_grad else x / x.abs().mean(1, keepdim=True)
