"""Contiguous float32 and float64 matrices, with an exception of its own for the rest."""

import torch


class UnsupportedInputError(Exception):
    """Raised for all that this kernel does not take."""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype not in (torch.float32, torch.float64) or x.dim() != 2 or not x.is_contiguous():
            raise UnsupportedInputError(f"{x.dtype}, {tuple(x.shape)}")
        return x / x.abs().mean(1, keepdim=True)
