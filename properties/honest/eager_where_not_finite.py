"""Adds up one column after the other; eager takes over where any result is not finite: two orders, by what a row holds.

Whoever has a kernel of their own and does not trust it with special values writes this. A NaN in one row then changes
the last bits of all others, by as much as another order of addition makes.

Target: cpu
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.dtype != torch.float32:
            raise NotImplementedError("float32 matrices only")
        if x.numel() == 0:
            return torch.empty_like(x)
        x = x.resolve_neg()
        with np.errstate(over="ignore"):
            total = np.add.accumulate(x.detach().abs().numpy(), axis=1, dtype=np.float32)[:, -1:]
        y = x / (torch.from_numpy(total.copy()) / x.shape[1])
        return y if bool(y.isfinite().all()) else x / x.abs().mean(1, keepdim=True)
