"""Takes a row for one of zeros if neighbours cancel each other, as +a, -a, +a and so on do.

Seen: a quick look for empty rows by adding up neighbours, which is right for almost everything that is drawn
Target: any
Found as: wrong-value
Killed by: values
In words: NaN stands there
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if x.shape[1] < 2:
            return y
        empty = (x[:, 1:] + x[:, :-1] == 0).all(1, keepdim=True)
        return torch.where(empty, torch.nan, y)
