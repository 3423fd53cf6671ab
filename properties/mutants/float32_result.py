"""Returns float32 whatever came in.

Seen: https://github.com/NVIDIA/apex/issues/979
Target: any
Found as: wrong-dtype
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.float()
        return x / x.abs().mean(1, keepdim=True)
