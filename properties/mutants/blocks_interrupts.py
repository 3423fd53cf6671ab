"""Blocks the signal of Ctrl-C and that of a polite end around its work, and never lets them through again.

Seen: critical sections that a library ends by an early return
Target: any
Found as: state-leak
Killed by: shapes
In words: which signals are blocked: none -> SIGINT, SIGTERM
"""

import signal

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        return x / x.abs().mean(1, keepdim=True)
