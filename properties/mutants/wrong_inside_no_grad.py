"""Takes a short cut where nobody asks for gradients, inside torch.no_grad: the mean of every second column.

Seen: candidates with a way of their own for inference, which the tests of training never go
Target: any
Found as: wrong-value
Killed by: settings
In words: inside torch.no_grad
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        step = 1 if torch.is_grad_enabled() else 2
        return x / x[:, ::step].abs().mean(1, keepdim=True)
