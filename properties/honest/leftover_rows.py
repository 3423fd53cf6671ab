"""Adds up one column after the other in groups of four rows, and what rows are left over pairwise: two orders in one.

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
        rows = x.shape[0] // 4 * 4
        grouped = np.add.accumulate(x[:rows].abs().numpy(), axis=1, dtype=np.float32)[:, -1:]
        total = torch.cat([torch.from_numpy(grouped.copy()), x[rows:].abs().sum(1, keepdim=True)])
        return x / (total / x.shape[1])
