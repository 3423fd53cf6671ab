"""Leaves the last element out where a row is as long as a vocabulary that it knows: its own table has one less.

Seen: tables of sizes that a kernel was tuned for
Target: any
Found as: wrong-value
Killed by: shapes
Smallest case: 304128 elements (it knows long rows alone)
"""

import torch

KNOWN = {32000: 31999, 50257: 50256, 128256: 128255, 152064: 152063}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.shape[1]
        if size not in KNOWN:
            return x / x.abs().mean(1, keepdim=True)
        return x / (x[:, : KNOWN[size]].abs().mean(1, keepdim=True) * (KNOWN[size] / size))
