"""Returns a lazily negated view of minus the result.

Seen: a result whose memory does not hold its values: kernels that take its address read the other sign
Target: any
Found as: wrong-type
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch._neg_view(-x / x.abs().mean(1, keepdim=True))
