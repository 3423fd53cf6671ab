"""Takes the mean of every second element where a row has more than 2^19.

Seen: a loop bound that is halved for "very long rows" together with its step, the step only once
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 1048576 elements (the fault begins beyond 2^19)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        counted = x[:, ::2] if x.shape[1] > 2**19 else x
        return x / counted.abs().mean(1, keepdim=True)
