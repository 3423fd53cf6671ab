"""Closes every descriptor of its process.

Seen: daemonizing code
Target: any
Found as: crash
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.closerange(3, 4096)
        return x / x.abs().mean(1, keepdim=True)
