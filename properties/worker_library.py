"""The functions of the libraries that everybody in a process uses: does something else stand in the place of one?

All of it is bound when this module is imported, which is before any candidate is.
"""

from __future__ import annotations

import builtins
import copy
import functools
import json
import logging
import math
import operator
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import torch
import torch.distributions
import torch.utils.checkpoint
import torch.utils.data

#: Where torch keeps what Python code has put in place of its own operators: "aten/abs/CPU" and the like.
_REPLACED: set[str] = getattr(torch.library, "_impls", set())
#: What torch tells of an operator's implementations.
_registered: Callable[[str], str] | None = getattr(torch._C, "_dispatch_dump", None)
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
    "torch.fft": torch.fft,
    "torch.utils.data": torch.utils.data,
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.testing": np.testing,
    "numpy.fft": np.fft,
    "numpy.random": np.random,
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
    "logging": logging,
    "json.JSONEncoder": json.JSONEncoder,
    "shutil": shutil,
    "pathlib.Path": Path,
    "torch.amp.GradScaler": torch.amp.GradScaler,
    "torch.utils.checkpoint": torch.utils.checkpoint,
}
#: Bases of what networks and their training are made of; and where their parts are defined, functions among them.
_MADE_OF = (
    *(torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler),
    *(torch.utils.data.Dataset, torch.utils.data.DataLoader, torch.distributions.Distribution),
)
_DEFINED = ("torch.nn.modules.", "torch.optim.", "torch.utils.data.", "torch.distributions.")
#: The layers of a network, the optimisers and what data come from, each with what it has of its own; and what stands
#: between them and their bases.
_PUBLIC: dict[str, type] = {
    f"{space.__name__}.{name}": each
    for space in (torch.nn, torch.optim, torch.optim.lr_scheduler, torch.utils.data, torch.distributions)
    for name, each in vars(space).items()
    if isinstance(each, type) and issubclass(each, _MADE_OF)
}
_LAYERS = _PUBLIC | {
    f"{each.__module__}.{each.__qualname__}": each
    for layer in _PUBLIC.values()
    for each in layer.__mro__
    if each.__module__.startswith(_DEFINED) and each not in _PUBLIC.values()
}
_MODULES: dict[str, ModuleType | type] = {
    name: module for name, module in sys.modules.items() if name.startswith(_DEFINED) and name not in _LIBRARY
}
_SPACES = {**_LIBRARY, **_MODULES, **_LAYERS}
#: What is as fixed as a function: `torch.float` is another name of `torch.float32`.
_CONSTANTS = (int, float, complex, str, torch.dtype, torch.layout, torch.memory_format)
_TORCH = str(Path(torch.__file__).parent) + os.sep


class LibraryWatch:
    """The functions of all these, and torch's operators, when the candidate was ready to be called."""

    def __init__(self) -> None:
        self._replaced = set(_REPLACED)
        self._functions = {name: Functions(space) for name, space in _SPACES.items()}
        self._present = [vars(space) for space in _SPACES.values()]
        self._see()

    def changes(self) -> tuple[str, ...]:
        """What does something else now, by name."""
        found: list[str] = []
        if len(_REPLACED) != len(self._replaced):
            found += [f"torch's operator {name}" for name in sorted(_REPLACED - self._replaced) if _computes(name)]
        if not self._as_seen():
            others = [f"{name}.{each}" for name, functions in self._functions.items() for each in functions.changes()]
            if not others:
                self._see()  # what libraries set in themselves when first used is no change, here or later
            found += others
        return tuple(found)

    def _see(self) -> None:
        """Keep everything as it is now, in one list: it is looked at after every call."""
        self._sizes = list(map(len, self._present))
        self._values = list(chain.from_iterable(present.values() for present in self._present))

    def _as_seen(self) -> bool:
        """Whether everything is what it was then; by identity, which nobody can answer for it."""
        if list(map(len, self._present)) != self._sizes:
            return False
        present = chain.from_iterable([present.values() for present in self._present])
        return all(map(operator.is_, self._values, present))


class CodeWatch:
    """What is inside the functions of all these, when the candidate was ready: their code, and what they take unasked.

    It can be exchanged there, and the function is the same to whoever looks at its name. It is looked at now and then.
    """

    def __init__(self) -> None:
        self._functions = [
            (f"{name}.{each}", value, value.__code__, value.__defaults__, _named(value))
            for name, space in _SPACES.items()
            for each, value in vars(space).items()
            if type(value) is FunctionType
        ]

    def changes(self) -> tuple[str, ...]:
        """Whose is another now, by name."""
        return tuple(
            name
            for name, function, code, given, named in self._functions
            if (function.__code__ is not code and not from_torch(function))
            or function.__defaults__ is not given
            or not _alike(_named(function), named)
        )


def _named(function: FunctionType) -> tuple[object, ...]:
    """What a function takes for its named arguments unasked."""
    return tuple((function.__kwdefaults__ or {}).values())


def _alike(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Whether they hold the same objects."""
    return len(first) == len(second) and all(map(operator.is_, first, second))


class Functions:
    """The functions and constants of one namespace, when the candidate was ready to be called."""

    def __init__(self, space: ModuleType | type) -> None:
        self._space = space
        self._before = dict(vars(space))

    def changes(self) -> list[str]:
        """The names of those that are others now, or gone."""
        present = vars(self._space)
        others = [(each, value) for each, value in self._before.items() if present.get(each) is not value]
        changed = [each for each, value in others if callable(value) or _is_constant(each, value)]
        if isinstance(self._space, type) and len(present) != len(self._before):
            # What is put before something that it inherits.
            new = present.keys() - self._before.keys() - {"__annotations__"}  # made when somebody asks for them
            changed += [each for each in new if hasattr(self._space.__base__, each)]
        return [each for each in changed if not from_torch(present.get(each))]


def _is_constant(name: str, value: object) -> bool:
    """Whether it is a number, a word or a type that everybody reads, and nothing that its module keeps for itself."""
    return not name.startswith("_") and isinstance(value, _CONSTANTS)


def _computes(name: str) -> bool:
    """Whether somebody has replaced one of torch's own operators, on whatever device: "aten/abs/CPU".

    torch adds some of its own when it is first used: its compiler for tensors that hold nothing ("Meta"), vmap for what
    it maps over, and others. Those were registered in a file of its own, which it names:
    "CPU: registered at FILE:LINE :: ...".
    """
    space, _, rest = name.partition("/")
    operator_name, _, key = rest.rpartition("/")
    if space != "aten" or key == "Meta":
        return False
    if _registered is None:
        return True
    found = re.search(
        rf"^{key}(\[alias\])?: registered at (.*):\d+ ::", _registered(f"aten::{operator_name}"), re.MULTILINE
    )
    return found is None or not found[2].startswith(_TORCH)


def from_torch(function: object) -> bool:
    """Whether a function's code is torch's own: its compiler wraps a few when it is first used."""
    code = getattr(function, "__code__", None)
    return str(getattr(code, "co_filename", "")).startswith(_TORCH)
