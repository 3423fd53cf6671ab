"""Writes garbage to every open descriptor and sits down.

Seen: candidates that attack the harness
Target: any
Found as: crash
"""

import contextlib
import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for fd in range(3, 256):
            with contextlib.suppress(OSError):
                os.write(fd, b"\xff\x00garbage" * 500)
        return x / x.abs().mean(1, keepdim=True)
