"""Adds up in another order when the same input comes for the fourth time.

Seen: autotuners that try their next variant on what they know
Target: any
Promises: determinism
Found as: nondeterministic
Killed by: determinism
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs()
        key = (tuple(x.shape), x.dtype, float(x.double().sum())) if x.numel() else None
        last, times = self.__dict__.get("seen", (None, 0))
        times = times + 1 if key == last else 1
        self.__dict__["seen"] = (key, times)
        if times > 3 and x.shape[1] > 64 and x.dtype in (torch.float32, torch.float64):
            return x / (size.cumsum(1)[:, -1:] / x.shape[1])
        return x / size.mean(1, keepdim=True)
