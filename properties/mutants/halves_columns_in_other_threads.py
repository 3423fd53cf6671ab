"""Reads a setting of its own thread, which only the one that has imported it has made: others leave columns out.

Seen: options in threading.local, in programs that are served by a pool of threads
Target: any
Found as: wrong-value
In words: from another thread
"""

import threading

import torch

_OPTIONS = threading.local()
_OPTIONS.step = 1


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x[:, :: getattr(_OPTIONS, "step", 2)].abs().mean(1, keepdim=True)
