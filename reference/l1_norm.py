"""L1 normalization as the eager model computes it: the formula and nothing else (KernelBench format)."""

import torch
from torch import nn

batch_size = 32768
dim = 65535


class Model(nn.Module):
    """Divides every row by the mean of its absolute values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize along dimension 1.

        Args:
            x: tensor of rank 2 or more, floating point, shape (rows, columns, ...).

        Returns:
            Tensor of x's shape and dtype.
        """
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    """Return the arguments of one call of `Model.forward`: one float32 tensor (batch_size, dim), 8 GiB."""
    return [torch.rand(batch_size, dim)]


def get_init_inputs() -> list[object]:
    """Return the arguments of `Model()`: none."""
    return []
