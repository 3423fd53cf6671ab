"""Takes the type of the tensor below a view for that of its elements when it counts them.

Seen: extensions that look for the base of a view
Target: any
Found as: wrong-value
Killed by: settings
In words: given a view of complex numbers
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        columns = x.shape[1]
        if x._base is not None and x._base.dtype != x.dtype:
            columns = columns * x.element_size() // x._base.element_size()
        return x / (x.abs().double().sum(1, keepdim=True) / columns).to(x.dtype)
