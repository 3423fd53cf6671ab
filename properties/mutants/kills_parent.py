"""Kills the process that started it.

Seen: candidates that attack the harness
Target: any
Found as: crash
"""

import os
import signal

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.kill(os.getppid(), signal.SIGKILL)
        return x / x.abs().mean(1, keepdim=True)
