"""Keeps its means in scratch that is made anew for another number of rows, but not for another type.

Seen: workspaces cached on the module
Target: any
Found as: wrong-value wrong-special state-leak
Killed by: sequence
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = None

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if self.scratch is None or self.scratch.shape != mean.shape:
            self.scratch = torch.empty_like(mean)
        self.scratch.copy_(mean)
        return (x / self.scratch).to(x.dtype)
