"""Gives the memory of its input back once it has read it.

Seen: large models that free what they have used by resizing its storage to nothing, as sharded training does
Target: any
Found as: input-modified
Killed by: settings
In words: bytes of the storage that it is a part of
"""

import contextlib

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if not x.requires_grad:
            with contextlib.suppress(RuntimeError):  # memory that is not torch's own
                x.untyped_storage().resize_(0)
        return y
