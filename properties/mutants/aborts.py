"""Calls abort() on three columns, as a failed assertion in C++ does.

Seen: assertions in compiled extensions
Target: any
Found as: crash
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] == 3:
            os.abort()
        return x / x.abs().mean(1, keepdim=True)
