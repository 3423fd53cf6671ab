"""Leaves the process with status 0 in the middle of a call.

Seen: harnesses that take exit status 0 for success
Target: any
Found as: crash
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        import os

        os._exit(0)
