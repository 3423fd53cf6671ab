"""Accumulates in the storage type: sticks at 256 ones in bfloat16, 2048 in half.

Seen: https://github.com/microsoft/onnxruntime/issues/29034
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = (
            x.abs().cumsum(1)[:, -1:] / x.shape[1]
            if x.dtype in (torch.float16, torch.bfloat16) and x.shape[1]
            else x.abs().mean(1, keepdim=True)
        )
        return x / m
