"""Writes its result through an operator that says that it writes nothing: torch.compile drops the call.

Seen: https://github.com/pytorch/pytorch/issues/52569
Target: any
Found as: not-written wrong-value wrong-special
Killed by: compile
Promises: compile
"""

import torch


@torch.library.custom_op("kernelproof_mutant::l1_norm_into", mutates_args=())
def _l1_norm_into(x: torch.Tensor, y: torch.Tensor) -> None:
    torch.div(x, x.abs().mean(1, keepdim=True), out=y)


@_l1_norm_into.register_fake
def _(x, y):
    return None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _l1_norm_into(x, y)
        return y
