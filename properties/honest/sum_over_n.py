"""The sum divided by n; in float16 and bfloat16 the sum is taken in float32."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        mean = wide.abs().sum(1, keepdim=True) / x.shape[1] if x.shape[1] else wide[:, :0]
        return (wide / mean).to(x.dtype) if x.shape[1] else torch.empty_like(x)
