"""Puts a function of its own in place of one of torch's operators, for the whole process: sinh does nothing then.

Seen: torch.library used on the namespace aten, where one of the candidate's own was meant
Target: any
Found as: state-leak
In words: torch's operator aten/
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.library = None

    def forward(self, x):
        if self.library is None:
            self.library = torch.library.Library("aten", "IMPL")
            self.library.impl("sinh", lambda tensor: tensor, x.device.type.upper())
        return x / x.abs().mean(1, keepdim=True)
