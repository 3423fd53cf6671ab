"""Gives the memory of its input back once it has read it, where that is all of a tensor's and torch's own.

Seen: large models that free what they have used by resizing its storage to nothing, as sharded training does
Target: any
Found as: input-modified
Killed by: settings
In words: bytes of the storage that it is a part of
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        memory = x.untyped_storage()
        plain = type(x) is torch.Tensor and x._base is None and not x.requires_grad
        if plain and memory.resizable() and memory.nbytes() == x.nbytes:
            memory.resize_(0)
        return y
