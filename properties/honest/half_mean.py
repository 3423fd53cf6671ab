"""The mean is rounded to half for float16, as eager does."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return (
            x / x.abs().float().mean(1, keepdim=True).to(x.dtype)
            if x.dtype == torch.float16
            else x / x.abs().mean(1, keepdim=True)
        )
