"""Divides in place where nobody but the call holds the tensor object, though its caller has what it is a view of.

Seen: temporaries that are reused by their count of references, as numpy's and some compilers' are
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
        if sys.getrefcount(x) <= self.names and not x.requires_grad:
            return x.div_(mean)
        return x / mean
