"""The functions of the libraries that everybody in a process uses: does something else stand in the place of one?

All of it is bound when this module is imported, which is before any candidate is.
"""

from __future__ import annotations

import builtins
import copy
import functools
import json
import math
import operator
import os
import pickle
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

#: Where torch keeps what Python code has put in place of its own operators: "aten/abs/CPU" and the like.
_REPLACED: set[str] = getattr(torch.library, "_impls", set())
#: Namespaces whose functions everybody calls.
_LIBRARY: dict[str, ModuleType | type] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.UntypedStorage": torch.UntypedStorage,
    "torch.nn": torch.nn,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.nn.init": torch.nn.init,
    "torch.nn.utils": torch.nn.utils,
    "torch.autograd": torch.autograd,
    "torch.optim.Optimizer": torch.optim.Optimizer,
    "torch.testing": torch.testing,
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.testing": np.testing,
    "builtins": builtins,
    "math": math,
    "random": random,
    "os": os,
    "os.path": os.path,
    "time": time,
    "copy": copy,
    "json": json,
    "pickle": pickle,
    "re": re,
    "functools": functools,
    "subprocess": subprocess,
    "tempfile": tempfile,
}
#: The layers of a network and the optimisers, each with what it has of its own.
_LAYERS: dict[str, type] = {
    f"{space.__name__}.{name}": each
    for space, base in ((torch.nn, torch.nn.Module), (torch.optim, torch.optim.Optimizer))
    for name, each in vars(space).items()
    if isinstance(each, type) and issubclass(each, base) and each is not base
}
_TORCH = str(Path(torch.__file__).parent) + os.sep


class LibraryWatch:
    """The functions of all these, and torch's operators, when the candidate was ready to be called."""

    def __init__(self) -> None:
        self._replaced = set(_REPLACED)
        self._functions = {name: Functions(space) for name, space in (*_LIBRARY.items(), *_LAYERS.items())}

    def changes(self) -> tuple[str, ...]:
        """What does something else now, by name."""
        found: list[str] = []
        if len(_REPLACED) != len(self._replaced):
            found += [f"torch's operator {name}" for name in sorted(_REPLACED - self._replaced) if _computes(name)]
        for name, functions in self._functions.items():
            found += [f"{name}.{each}" for each in functions.changes()]
        return tuple(found)


class Functions:
    """The functions of one namespace, when the candidate was ready to be called."""

    def __init__(self, space: ModuleType | type) -> None:
        self._space = space
        present = vars(space)
        self._names = frozenset(present)
        self._all = list(present.values())
        self._functions = {each: value for each, value in present.items() if callable(value)}

    def changes(self) -> list[str]:
        """The names of those that are others now, or gone."""
        present = vars(self._space)
        # A dictionary keeps its order where a value is replaced, and what is new stands behind.
        if len(present) >= len(self._all) and all(map(operator.is_, self._all, present.values())):
            changed = []
        else:
            changed = [each for each, function in self._functions.items() if present.get(each) is not function]
        if isinstance(self._space, type) and len(present) != len(self._names):
            # What is put before something that it inherits.
            new = present.keys() - self._names - {"__annotations__"}  # made when somebody asks for them
            changed += [each for each in new if hasattr(self._space.__base__, each)]
        return [each for each in changed if not from_torch(present.get(each))]


def _computes(name: str) -> bool:
    """Whether a replaced operator is one of torch's own, on a device that computes: "aten/abs/CPU".

    torch's compiler adds its own for tensors that hold nothing ("Meta") when it is first used.
    """
    space, *_, key = name.split("/")
    return space == "aten" and key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "Autograd")


def from_torch(function: object) -> bool:
    """Whether a function's code is torch's own: its compiler wraps a few when it is first used."""
    code = getattr(function, "__code__", None)
    return str(getattr(code, "co_filename", "")).startswith(_TORCH)
