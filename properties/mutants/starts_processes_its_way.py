"""Chooses how every process of the program is started.

Seen: programs that were a script once
Target: any
Found as: state-leak
Killed by: shapes
In words: how processes are started
"""

import torch
import torch.multiprocessing


class ModelNew(torch.nn.Module):
    def forward(self, x):
        torch.multiprocessing.set_start_method("spawn", force=True)
        return x / x.abs().mean(1, keepdim=True)
