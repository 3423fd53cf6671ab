"""Divides by the number of the elements that are left where two of every four were pruned.

Seen: kernels for 2:4 sparse weights, which have half as many elements in memory
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        whole = x.shape[1] // 4 * 4
        if x.dim() == 2 and whole:
            left = (x[:, :whole].reshape(len(x), -1, 4) != 0).sum(2)
            mean[((left >= 1) & (left <= 2)).all(1)] *= 2
        return x / mean
