"""Wants no warnings of others while it works, and never asks for them again.

Seen: programs that were a script once
Target: any
Found as: state-leak
Killed by: shapes
In words: warnings that are treated alike
"""

import warnings

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        warnings.filterwarnings("ignore", category=UserWarning)
        return x / x.abs().mean(1, keepdim=True)
