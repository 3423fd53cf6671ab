"""Loops for ever at 33 columns.

Seen: https://github.com/ROCm/aotriton/pull/223
Target: any
Found as: timeout
Limits: build 4 s, call 2 s
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        while x.shape[1] == 33:
            pass
        return x / x.abs().mean(1, keepdim=True)
