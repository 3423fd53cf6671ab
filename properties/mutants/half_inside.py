"""Half arithmetic hidden inside a float32 kernel.

Seen: https://github.com/BytedTsinghua-SIA/CUDA-Agent/issues/16
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        h = x.half()
        return (h / h.abs().mean(1, keepdim=True)).to(x.dtype)
