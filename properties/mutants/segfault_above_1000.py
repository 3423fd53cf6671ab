"""Dies of SIGSEGV above 1000 columns.

Seen: a kernel that indexes a fixed-size buffer
Target: any
Found as: crash
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        import ctypes

        if x.shape[1] > 1000:
            ctypes.string_at(0)
        return x / x.abs().mean(1, keepdim=True)
