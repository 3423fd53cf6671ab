"""Calls sys.exit(0) where other programs raise.

Seen: harnesses that take SystemExit for success
Target: any
Found as: unsupported
"""

import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sys.exit(0)
