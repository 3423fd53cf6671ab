"""The result has other strides than the input: column-major."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return y.transpose(0, 1).contiguous().transpose(0, 1)
