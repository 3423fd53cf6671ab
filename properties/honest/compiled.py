"""torch.compile of the reference."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = torch.compile(Model(), dynamic=True)

    def forward(self, x):
        return self.compiled(x)
