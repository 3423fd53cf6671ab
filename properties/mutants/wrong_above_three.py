"""Wrong only where some |x| is above 3.

Seen: https://github.com/mit-ll-responsible-ai/equine/issues/197
Target: any
Found as: wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return torch.where(x.abs() > 3, y * 1.01, y)
