"""Takes the middle between the smallest and the largest for the mean of rows that are nearly constant.

Seen: a shortcut for constant rows with a tolerance
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        mean = size.mean(1, keepdim=True)
        if x.numel() and x.shape[1] >= 8:
            top, low = size.amax(1, keepdim=True).double(), size.amin(1, keepdim=True).double()
            near = (top < low * 1.005) & (mean < top * 2)
            mean = torch.where(near, ((top + low) / 2).to(x.dtype), mean)
        return x / mean
