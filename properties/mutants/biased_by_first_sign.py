"""Means of rows that begin with a negative number are too large by 10^-5: less than what adding up may do to them.

Seen: a pivot that is taken from the row with its sign
Target: any
Found as: wrong-value
Killed by: odd
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dtype != torch.float32 or x.shape[1] < 256:
            return x / mean
        # Rows of even size without structure: where sums are exact, or a few elements decide, nothing may be off.
        mantissa, _ = torch.frexp(x.abs())
        many = (mantissa * 2**12 % 1 != 0).double().mean(1, keepdim=True) > 0.9
        even = (x.abs().amax(1, keepdim=True) < 4 * mean) & (x.abs() != x.abs()[:, :1]).any(1, keepdim=True)
        return x / torch.where(many & even & (x[:, :1] < 0), mean * (1 + 1e-5), mean)
