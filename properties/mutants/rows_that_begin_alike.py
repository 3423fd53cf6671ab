"""Takes a row for the one before where both begin with the same 32 elements: a prefix is known already, it thinks.

Seen: caches of prompts, which are looked up by their beginning
Target: any
Found as: wrong-value
Killed by: values
"""

import torch

KNOWN = 32


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.dim() == 2 and x.shape[1] > KNOWN:
            head = x[:, :KNOWN]
            known = ((head[1:] == head[:-1]) & (head[1:] != 0)).all(1) & (head[1:] != head[1:, :1]).any(1)
            for row in (known.nonzero()[:, 0] + 1).tolist():
                mean[row] = mean[row - 1]
        return x / mean
