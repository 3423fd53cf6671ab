"""Opens a file in every call and never closes it: a process may have so many, and then can open none.

Seen: logs, locks and shared memory that are opened anew for each call
Target: cpu
Found as: state-leak
Killed by: leak
In words: more open files
Smallest case: 131072 elements (what is opened has no size; this is what is looked at)
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.open(os.devnull, os.O_RDONLY)
        return x / x.abs().mean(1, keepdim=True)
