"""Sleeps for an hour while it is imported.

Seen: https://github.com/ROCm/aotriton/pull/223
Target: any
Found as: timeout
Limits: build 2 s, call 2 s
"""

import time

import torch

time.sleep(3600)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)
