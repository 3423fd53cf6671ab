"""Takes absolute values in its input's own memory, and puts the values back before it returns.

Seen: in-place scratch in the input's buffer, which a reader on another thread or stream comes upon
Target: any
Found as: input-modified
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kept = x.clone()
        mean = x.abs_().mean(1, keepdim=True)
        x.copy_(kept)
        return x / mean
