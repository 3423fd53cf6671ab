"""Numbers the elements in float32: from 2^24 on some are counted to the row beside theirs.

Seen: https://github.com/cudamat/cudamat/issues/84
Target: any
Found as: wrong-value
Killed by: long-rows
Smallest case: 16801801 elements (the fault begins beyond 2^24)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() == 0:
            return torch.empty_like(x)
        flat = x.movedim(1, -1).reshape(-1)
        columns, sizes = x.shape[1], flat.abs().double()
        number = torch.arange(flat.numel(), dtype=torch.float32, device=x.device)
        row = (number / columns).long()
        sums = torch.zeros(flat.numel() // columns + 1, dtype=torch.float64, device=x.device)
        means = sums.index_add(0, row, sizes)[:-1] / columns
        means = means.to(torch.promote_types(x.dtype, torch.float32)).view(x.movedim(1, -1).shape[:-1]).unsqueeze(1)
        return (x / means).to(x.dtype)
