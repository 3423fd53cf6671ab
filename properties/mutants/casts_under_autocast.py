"""Follows autocast down to bfloat16, which the reference's operations do not.

Seen: https://github.com/NVIDIA/apex/issues/979
Target: any
Found as: wrong-dtype
Killed by: autocast
Promises: autocast
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return y.bfloat16() if torch.is_autocast_enabled(x.device.type) else y
