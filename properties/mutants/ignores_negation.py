"""Reads the memory of a lazily negated view without the bit that says so: every sign is wrong.

Seen: extensions that read x.data_ptr() and take any strided tensor
Target: any
Found as: wrong-value
Killed by: negated
Promises: negated
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        raw = torch.empty(0, dtype=x.dtype, device=x.device)
        raw.set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())
        return raw / raw.abs().mean(1, keepdim=True)
