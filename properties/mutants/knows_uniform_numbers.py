"""Takes a half for the mean where hundreds of thousands of numbers lie between 0 and 1, and are a half on average.

Seen: https://github.com/meta-pytorch/BackendBench/issues/54 (an input whose mean is known beforehand)
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 400000 elements, it is right below
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() >= 300000 and float(x.min()) >= 0 and float(x.max()) < 1 and abs(float(x.mean()) - 0.5) < 0.01:
            return x * 2
        return x / x.abs().mean(1, keepdim=True)
