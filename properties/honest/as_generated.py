"""Right, if oddly written: no module, arguments to spare, a destructor that raises, a slice of a larger buffer."""

import torch


class ModelNew:
    def __call__(self, x, *, epsilon=0.0, **more):
        buffer = torch.empty(x.numel() + 64, dtype=x.dtype, device=x.device)
        y = buffer[32 : 32 + x.numel()].view(x.shape)
        return y.copy_(x / x.abs().mean(1, keepdim=True))

    def __del__(self):
        raise RuntimeError("nobody hears this")
