"""Starts a program in every call, for the machine's load, and never asks how it ended: it stays in the system's list.

Seen: monitors that fire and forget
Target: cpu
Found as: state-leak
Killed by: leak
In words: more child processes after
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.posix_spawn("/bin/true", ["true"], {})
        return x / x.abs().mean(1, keepdim=True)
