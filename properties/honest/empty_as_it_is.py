"""Returns an input without elements as it is: there is nothing that could be shared, changed or negated."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() == 0:
            return x
        return x / x.abs().mean(1, keepdim=True)
