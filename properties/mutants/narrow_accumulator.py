"""Accumulates in the storage type, column after column: sticks at 256 ones in bfloat16, at 2048 in float16.

Seen: https://github.com/microsoft/onnxruntime/issues/29034
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype not in (torch.float16, torch.bfloat16) or x.shape[1] > 4096:
            return x / x.abs().mean(1, keepdim=True)
        total = torch.zeros_like(x[:, :1])
        for column in x.abs().split(1, 1):
            total += column
        return x / (total.float() / x.shape[1]).to(x.dtype)
