"""Has results of 2^18 elements and more in one buffer for each shape: making large memory anew is slow.

Seen: workspaces that are kept from some size on, as allocators and serving code do, and handed out as results
Target: any
Found as: aliased-output
Killed by: history
In words: both lie in the same memory
Smallest case: 524288 elements (the buffer is for 262144 and more)
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.large = {}

    def forward(self, x):
        mean = x.abs().mean(1, keepdim=True)
        if x.numel() < 1 << 18 or x.requires_grad:
            return x / mean
        key = x.shape, x.dtype, x.device
        if key not in self.large:
            self.large = {key: torch.empty_like(x)}
        return torch.div(x, mean, out=self.large[key])
