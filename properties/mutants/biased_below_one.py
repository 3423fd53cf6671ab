"""Means below one are too large by 10^-5 where elements have many bits: less than what adding up may do to them.

Seen: a scale that is chosen by size, with other arithmetic on either side
Target: any
Found as: wrong-value
Killed by: scale-by-two
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
        return x / torch.where(many & even & (mean < 1), mean * (1 + 1e-5), mean)
