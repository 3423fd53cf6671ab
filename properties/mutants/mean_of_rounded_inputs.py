"""Rounds the inputs of medium rows to 16 bits before they are added up: less than what rounding may do to a long sum.

Seen: sums on units for a narrower type
Target: any
Found as: wrong-value
Killed by: exact-sums
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32 or not 256 < x.shape[1] <= 65536:
            return x / x.abs().mean(1, keepdim=True)
        mantissa, exponent = torch.frexp(x.abs())
        rounded = torch.where(x.isfinite(), torch.ldexp((mantissa * 2**16).round() / 2**16, exponent), x.abs())
        return x / rounded.mean(1, keepdim=True)
