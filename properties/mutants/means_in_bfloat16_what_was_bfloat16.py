"""Rounds the mean to bfloat16 where every float32 is one.

Seen: activations that were cast up: nothing is lost by casting them down, it seems
Target: any
Found as: wrong-value
Killed by: values
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype == torch.float32 and x.numel() > 2000:
            narrow = x.bfloat16()
            if bool((narrow == x).all()):
                return x / narrow.abs().mean(1, keepdim=True).float()
        return x / x.abs().mean(1, keepdim=True)
