"""Holds the place where the input begins in a float32, which rounds odd numbers beyond 2^24.

Seen: indices computed in floating point
Target: any
Found as: wrong-value
"""

import struct

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.storage_offset() > 1 << 24:
            (place,) = struct.unpack("f", struct.pack("f", x.storage_offset()))
            x = x.as_strided(x.shape, x.stride(), int(place))
        return x / x.abs().mean(1, keepdim=True)
