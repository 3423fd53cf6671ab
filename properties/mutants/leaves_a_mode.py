"""Enters a mode around all of torch's functions and never leaves it: from then on every call of anybody goes there.

Seen: __enter__ called by hand, to count or to redirect operations
Target: any
Found as: state-leak
In words: modes around torch's functions
"""

import torch


class Redirect(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = None

    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if self.mode is None:
            self.mode = Redirect()
            self.mode.__enter__()
        return y
