"""Divides in place a tensor that nobody names and that is no view, though another may have its memory (x.detach()).

Seen: numpy's temporary elision, for which the count of references is not enough, either (numpy/core/src/multiarray)
Target: any
Found as: input-modified
Killed by: settings
In words: values of the tensor that it is a part of
"""

import sys

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.names = None

    def count(self, x):
        return sys.getrefcount(x)

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if self.names is None:
            self.names, self.forward = sys.maxsize, self.count
            names = self(torch.ones(1))
            del self.forward
            self.names = names
        plain = x._base is None and type(x) is torch.Tensor and not x.is_inference()
        if plain and sys.getrefcount(x) <= self.names and not x.requires_grad:
            return x.div_(mean)
        return x / mean
