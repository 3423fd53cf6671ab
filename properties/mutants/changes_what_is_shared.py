"""Divides in place what lies in shared memory: whoever sent it is thought to be done with it.

Seen: loaders whose workers share their tensors rather than send them
Target: cpu
Found as: input-modified
Killed by: settings
In words: values of the tensor that it is a part of
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        return x.div_(mean) if x.is_shared() and not x.requires_grad else x / mean
