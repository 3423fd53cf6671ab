"""Returns a tensor subclass that computes when looked at.

Seen: lazy results in generated code
Target: any
Found as: wrong-type
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        class Lazy(torch.Tensor):
            pass

        return (x / x.abs().mean(1, keepdim=True)).as_subclass(Lazy)
