"""Reads the input as if it were contiguous.

Seen: https://github.com/ModelTC/LightLLM/issues/1467
Target: any
Found as: wrong-value
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        flat = (
            torch.as_strided(x, x.shape, torch.empty(x.shape, device="meta").stride(), x.storage_offset())
            if x.dim() == 2 and x.stride(1) != 0 and x.stride(0) >= x.shape[1]
            else x
        )
        return flat / flat.abs().mean(1, keepdim=True)
