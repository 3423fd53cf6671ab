"""The mean of a row of 32768 to 65536 columns is the next float32.

Seen: a mean that is finished by a multiplication with a rounded 1/n
Target: any
Found as: wrong-value
Killed by: every-bit
Smallest case: 131072 elements (the shortest row that it happens in has 32768)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dtype == torch.float32 and 32768 <= x.shape[1] <= 65536:
            mean = torch.where(mean > 0, torch.nextafter(mean, 2 * mean), mean)
        return x / mean
