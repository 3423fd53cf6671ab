"""Sends what the process says of errors to nowhere, so that nobody sees a compiler's warnings, for good.

Seen: os.dup2(devnull, 2) around a noisy library, never undone
Target: any
Found as: state-leak
Killed by: shapes
In words: where its standard error goes
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        return x / x.abs().mean(1, keepdim=True)
