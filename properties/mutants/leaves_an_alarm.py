"""Sets an alarm that ends the process in an hour, and leaves it set.

Seen: timeouts that a kernel's author put around a launch
Target: any
Found as: state-leak
Killed by: shapes
In words: a pending alarm
"""

import signal

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        signal.alarm(3600)
        return x / x.abs().mean(1, keepdim=True)
