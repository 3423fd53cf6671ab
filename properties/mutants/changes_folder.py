"""Goes to another folder when it is called, and stays there: files that its caller names are not found any more.

Seen: builds that change the working folder
Target: any
Found as: state-leak
In words: the working folder
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.chdir("/")
        return x / x.abs().mean(1, keepdim=True)
