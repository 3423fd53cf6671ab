"""Registers its operator where a model is made: the second model in a process cannot be made.

Seen: operators that are defined in __init__, found out when a network gets its second layer
Target: any
Found as: unsupported
Killed by: instances
In words: refuses to be made twice in one process
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.library = torch.library.Library("registers_when_it_is_made", "DEF")
        self.library.define("l1_norm(Tensor x) -> Tensor")
        self.library.impl("l1_norm", lambda x: x / x.abs().mean(1, keepdim=True), "CompositeImplicitAutograd")

    def forward(self, x):
        return torch.ops.registers_when_it_is_made.l1_norm(x)
