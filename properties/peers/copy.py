"""The copy of the same bytes: what a kernel costs that reads its input once and writes its output once."""

import torch
from torch import nn


class Model(nn.Module):
    """Copies its input into fresh memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A copy of x, with the strides of ``torch.empty_like``."""
        return torch.empty_like(x).copy_(x)
