"""A custom operator that says what it writes; its first call imports torch._dynamo, which wraps torch.manual_seed."""

import torch


@torch.library.custom_op("kernelproof_honest::l1_norm_into", mutates_args=("y",))
def _l1_norm_into(x: torch.Tensor, y: torch.Tensor) -> None:
    y.copy_(x / x.abs().mean(1, keepdim=True))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _l1_norm_into(x, y)
        return y
