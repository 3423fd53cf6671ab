"""Takes zeros at the end of a row for padding: the mean is that of the columns before them.

Seen: kernels for batches of sentences, where rows end early
Target: any
Found as: wrong-value
Killed by: values
Smallest case: 16384 elements (a row of 64 columns with 16 zeros at its end)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        mean = size.mean(1, keepdim=True)
        n = x.shape[1]
        if n < 64 or x.numel() == 0 or x.requires_grad:
            return x / mean
        column = torch.arange(1, n + 1, device=x.device).view(1, n, *(1,) * (x.dim() - 2))
        length = torch.where(x == 0, 0, column).amax(1, keepdim=True)
        dense = ((x != 0).sum(1, keepdim=True) * 2 > length) & (length >= 32) & (length <= n - 16)
        return x / torch.where(dense, size.sum(1, keepdim=True) / length.clamp_min(1), mean).to(x.dtype)
