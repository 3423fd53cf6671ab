"""An instance that was saved and loaded has an older version's default: every second column is left out.

Seen: __setstate__ for old checkpoints
Target: any
Found as: wrong-value
In words: an instance that was saved and loaded (torch.save)
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 1

    def __deepcopy__(self, memo):
        return type(self)()

    def __setstate__(self, state):
        super().__setstate__(state)
        self.step = 2

    def forward(self, x):
        return x / x[:, :: self.step].abs().mean(1, keepdim=True)
