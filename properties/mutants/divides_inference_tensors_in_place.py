"""Divides an input that belongs to inference mode in its own memory, because nobody can ask for its gradient.

Seen: in-place kernels where "it is only inference"
Target: any
Found as: input-modified
Killed by: settings
In words: given an inference tensor
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.is_inference():
            with torch.inference_mode():
                return x.div_(x.abs().mean(1, keepdim=True))
        return x / x.abs().mean(1, keepdim=True)
