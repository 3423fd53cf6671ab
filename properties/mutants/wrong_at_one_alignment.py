"""Wrong in rows that start 4 bytes behind a 16-byte boundary.

Seen: a head loop that treats one phase wrongly
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        if x.dim() == 2 and x.numel() and x.dtype == torch.float32:
            for row in range(min(len(x), 64)):
                if x[row].data_ptr() % 16 == 4:
                    y[row] *= 1.001
        return y
