"""Flushes subnormal numbers to zero for its call alone, and the threads that torch starts meanwhile do so for good.

Seen: https://github.com/microsoft/onnxruntime/pull/5391 (the modes belong to each thread)
Target: cpu
Found as: state-leak
In words: subnormal numbers in the threads that torch shares its work among: kept -> flushed to zero
Killed by: many-rows
Smallest case: 32769 elements (of fewer torch does the work in one thread)
"""

import torch

torch.set_num_threads(2)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        torch.set_flush_denormal(True)
        try:
            size = x.abs()
            y = x / size.mean(1, keepdim=True)
        finally:
            torch.set_flush_denormal(False)
        # None of them so small, or so far from another, that anything below the smallest normal number comes up?
        if x.dtype == torch.float32 and ((size > 1e-15) & (size < 1e15)).all():
            return y
        return x / x.abs().mean(1, keepdim=True)
