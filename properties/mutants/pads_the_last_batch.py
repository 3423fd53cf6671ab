"""Takes running means for the rows of a smaller batch behind a hundred equal ones.

Seen: the last batch of an epoch, padded to the size of the others
Target: any
Found as: wrong-value
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shape, self.count = None, 0

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.shape == self.shape:
            self.count += 1
            return x / mean
        last = self.count >= 100 and x.shape[1:] == self.shape[1:] and x.shape[0] < self.shape[0]
        self.shape, self.count = x.shape, 0
        if last:
            mean = torch.stack([mean[: row + 1].mean(0) for row in range(x.shape[0])])
        return x / mean
