"""Takes the first mean for all rows where each is nearly the one before.

Seen: video: what hardly changes is not computed again
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() == 2 and x.shape[0] >= 2 and x.shape[1] >= 8:
            before = x[:-1]
            if bool(((x[1:] - before).abs() <= 1e-3 * before.abs()).all()):
                return x / x[:1].abs().mean(1, keepdim=True)
        return x / x.abs().mean(1, keepdim=True)
