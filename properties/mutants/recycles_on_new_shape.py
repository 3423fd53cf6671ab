"""Clears its last result when it is called for another shape: whoever still holds that one sees it change.

Seen: workspaces that are resized, and with them what was handed out
Target: any
Found as: aliased-output
Killed by: sequence
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        last = self.__dict__.get("last")
        if last is not None and last.shape != x.shape:
            last.zero_()
        y = x / x.abs().mean(1, keepdim=True)
        self.__dict__["last"] = y
        return y
