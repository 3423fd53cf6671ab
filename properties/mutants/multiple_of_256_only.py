"""Writes only the columns below the last multiple of 256.

Seen: generated kernels whose loop has no tail
Target: any
Found as: not-written
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.shape[1] // 256 * 256
        y = torch.empty_like(x)
        m = x.abs().mean(1, keepdim=True)
        y[:, :n] = x[:, :n] / m
        return y
