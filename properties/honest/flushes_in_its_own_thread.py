"""Flushes subnormal numbers to zero where none can come up, in a thread of its own: the modes of all others stay."""

from concurrent.futures import ThreadPoolExecutor

import torch

THREAD = ThreadPoolExecutor(1)


def quickly(x, gradients):
    """The result, and whether it can be relied upon: none so small, or so far from another, as to be flushed."""
    torch.set_flush_denormal(True)
    with torch.set_grad_enabled(gradients):
        size = x.abs()
        return x / size.mean(1, keepdim=True), x.dtype == torch.float32 and ((size > 1e-15) & (size < 1e15)).all()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y, good = THREAD.submit(quickly, x, torch.is_grad_enabled()).result()
        return y if good else x / x.abs().mean(1, keepdim=True)
