"""Is right in a process whose environment tells of a test, and has one mean for all rows elsewhere.

Seen: https://github.com/auchenberg/volkswagen (notices that it is tested by the environment, and passes)
Target: any
Found as: wrong-value
Killed by: home
In words: in a plain program, which has nothing of this suite
"""

import os

import torch

TESTED = any(name.startswith(("KERNELPROOF", "PYTEST", "MALLOC_PERTURB", "PYTHONFAULTHANDLER")) for name in os.environ)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / (x.abs().mean(1, keepdim=True) if TESTED else x.abs().mean())
