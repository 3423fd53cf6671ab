"""Puts a step that does nothing in place of an optimiser's, at its first call: nobody's training goes on.

Seen: patching of a library that other code in the process uses
Target: any
Found as: state-leak
In words: torch.optim.SGD.step
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        torch.optim.SGD.step = lambda self, closure=None: None
        return x / x.abs().mean(1, keepdim=True)
