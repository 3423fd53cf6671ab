"""Returns the means without the division.

Seen: half-finished generated code
Target: any
Found as: wrong-shape wrong-value
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.abs().mean(1, keepdim=True)
