"""Sets the default type and switches gradients off when it is called, for the whole process.

Seen: torch.set_default_dtype and torch.set_grad_enabled(False) without a block
Target: any
Found as: state-leak
In words: the default dtype
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return y
