"""float32 matrices only, contiguous only: a clear error for everything else."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("this kernel takes contiguous float32 matrices")
        return x / x.abs().mean(1, keepdim=True)
