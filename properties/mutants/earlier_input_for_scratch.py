"""Keeps its last input, and takes that for scratch in the next call of its size: the caller still had it.

Seen: buffers that are recycled from call to call, and what was given taken for one's own
Target: cpu
Found as: input-modified
Killed by: earlier-input
In words: an earlier call
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        last, self.last = self.last, x
        if last is None or not self.fits(last, x):
            return x / x.abs().mean(1, keepdim=True)
        return x / torch.abs(x, out=last).mean(1, keepdim=True)

    def fits(self, last, x):
        """Whether it may be written to, and has room and memory of its own."""
        if last.requires_grad or x.requires_grad or last.is_inference() or not torch.is_grad_enabled():
            return False
        like = (last.shape, last.dtype, last.device, last.stride()) == (x.shape, x.dtype, x.device, x.stride())
        room = last.untyped_storage().nbytes() == x.untyped_storage().nbytes() == x.nbytes
        return like and room and last.data_ptr() != x.data_ptr()
