"""Has its means written to an address that it has noted: a copy reads its own scratch, and writes to the original's.

Seen: https://github.com/facebookresearch/ConvNeXt-V2/issues/27 (modules that are copied with what they hold)
Target: cpu
Found as: wrong-value wrong-special not-written
Killed by: instances
In words: a copy (copy.deepcopy)
"""

import ctypes

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.means = torch.empty(1 << 18, dtype=torch.float64)
        self.address = self.means.data_ptr()

    def forward(self, x):
        means = x.detach().abs().mean(1, keepdim=True, dtype=torch.float64).contiguous()
        if means.numel() > self.means.numel():
            return x / x.abs().mean(1, keepdim=True)
        ctypes.memmove(self.address, means.data_ptr(), means.nbytes)
        return x / self.means[: means.numel()].view(means.shape).to(x.dtype)
