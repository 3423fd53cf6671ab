"""Turns whatever it is given into float32 rather than refusing it: integers, lists and numbers get a result, too.

Seen: x.float() and torch.as_tensor(x) at the head of generated kernels
Target: any
Found as: accepted-invalid-input
Killed by: errors
Promises: errors
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = torch.as_tensor(x)
        if not x.dtype.is_floating_point:
            x = x.float()
        return x / x.abs().mean(1, keepdim=True)
