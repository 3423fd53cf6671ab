"""x * (n / S) with S and the factor in double; division where the factor leaves float64's normal range."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.double()
        s = wide.abs().sum(1, keepdim=True)
        n = x.shape[1]
        factor = n / s
        safe = (factor < 2.0**1000) & (factor > 2.0**-1000)
        return torch.where(safe, wide * factor, wide / (s / n)).to(x.dtype)
