"""Frees, when one instance goes, the workspace that all of them share: the others find nothing there any more.

Seen: handles and workspaces of a class that a destructor gives back
Target: any
Found as: unsupported
Killed by: instances
In words: the first instance, when the others are gone
"""

import torch


class ModelNew(torch.nn.Module):
    shared = {}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.shared["means"] = torch.empty(0)

    def forward(self, x):
        means = self.shared["means"].to(x).resize_(0)
        return x / torch.mean(x.abs(), 1, keepdim=True, out=means)

    def __del__(self):
        self.shared.clear()
