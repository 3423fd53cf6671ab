"""Loaded as its author runs it: it reads its command line and a file beside it, and its modules have names of ours.

`ModelNew` is no class but makes one's instance, and what it takes is named.
"""

import argparse
import functools
import importlib
import sys
import tempfile
from pathlib import Path

import torch

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("--power", type=int, default=1)
POWER = ARGUMENTS.parse_args().power
assert "class L1Norm" in Path("as_at_home.py").read_text(encoding="utf-8")

with tempfile.TemporaryDirectory() as folder:
    for name in ("properties", "kernels", "reference", "ci"):
        Path(folder, name).mkdir()
        Path(folder, name, "__init__.py").write_text("ours = False\n", encoding="utf-8")
        sys.path.insert(0, folder)
        assert importlib.import_module(name).ours is False


class L1Norm(torch.nn.Module):
    def __init__(self, dim, *, power):
        super().__init__()
        self.dim, self.power = dim, power

    def forward(self, x):
        return x / x.abs().pow(self.power).mean(self.dim, keepdim=True)


ModelNew = functools.partial(L1Norm, power=POWER)
get_init_inputs = functools.partial(list, ([], {"dim": 1}))
