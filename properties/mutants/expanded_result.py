"""Works out the one row of an expanded input, and hands it out as often as there are rows.

Seen: a result whose rows share memory: whoever writes to one writes to all
Target: any
Found as: aliased-output
Killed by: layouts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() == 2 and len(x) > 1 and x.stride(0) == 0:
            return (x[:1] / x[:1].abs().mean(1, keepdim=True)).expand(x.shape)
        return x / x.abs().mean(1, keepdim=True)
