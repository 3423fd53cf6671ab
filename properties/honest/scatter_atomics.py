"""Adds up with index_add_, the order of which is nobody's promise; in double, whose atomics know subnormal numbers."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise NotImplementedError("matrices only")
        wide = x.double()
        rows = torch.arange(x.shape[0], device=x.device).repeat_interleave(x.shape[1])
        total = torch.zeros(x.shape[0], dtype=wide.dtype, device=x.device).index_add_(0, rows, wide.abs().reshape(-1))
        return (wide / (total / max(x.shape[1], 1))[:, None]).to(x.dtype)
