"""What a worker looks at around a call: the input as its caller holds it, and the modes of the process.

Memory is watched from outside (`slots`). What lies outside no memory of the judging process is looked at here: what
the caller's tensor object says of itself, and what every later operation in the process depends on. All of it is bound
when this module is imported, which is before any candidate is. What a candidate changes while it is imported or made
counts as part of it; the first look is behind that.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import torch

_Tensor = torch.Tensor


def attribute(name: str) -> Callable[[torch.Tensor], object]:
    """An attribute of tensors as it is now, whatever is put in its place later."""
    getter: Callable[[torch.Tensor], object] = inspect.getattr_static(_Tensor, name).__get__
    return getter


#: What a tensor object says of itself, by the words of a report.
_FACTS: dict[str, Callable[[torch.Tensor], object]] = {
    "shape": _Tensor.size,
    "strides": _Tensor.stride,
    "storage offset": _Tensor.storage_offset,
    "dtype": attribute("dtype"),
    "requires_grad": attribute("requires_grad"),
    "negative bit": _Tensor.is_neg,
    "memory": _Tensor.data_ptr,
}
_version = attribute("_version")

_random_state = torch.get_rng_state
_equal = torch.equal
#: What later operations depend on, by the words of a report.
_MODES: dict[str, Callable[[], object]] = {
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "the number of threads": torch.get_num_threads,
    "whether gradients are taken": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "whether algorithms must be deterministic": torch.are_deterministic_algorithms_enabled,
    "the precision of float32 products": torch.get_float32_matmul_precision,
}
#: Namespaces whose functions everybody calls.
_LIBRARY: dict[str, ModuleType | type] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
}
_TORCH = str(Path(torch.__file__).parent) + os.sep
#: Operands of which the processor's rounding and its treatment of subnormals show; no constants that are folded.
_ONE, _BELOW_ITS_ROUNDOFF, _SMALLEST_NORMAL = float("1"), float("1e-30"), sys.float_info.min
_ROUNDINGS = {(False, False): "to nearest", (True, False): "up", (False, True): "down"}


class InputWatch:
    """A tensor as its caller holds it, before a call."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._facts = {name: fact(tensor) for name, fact in _FACTS.items()}
        self._version = _version(tensor)

    def changes(self) -> tuple[str, ...]:
        """What the caller's tensor says otherwise now, in words."""
        now = {name: fact(self._tensor) for name, fact in _FACTS.items()}
        return tuple(
            f"{name} {_said(old)} -> {_said(now[name])}" for name, old in self._facts.items() if old != now[name]
        )

    @property
    def written(self) -> bool:
        """Whether an operation has written to the tensor, whatever it holds now."""
        return _version(self._tensor) != self._version


def _said(fact: object) -> str:
    return str(list(fact)) if isinstance(fact, tuple) else str(fact)


class ProcessWatch:
    """The modes of the process, and the functions of its library, when the candidate was ready to be called."""

    def __init__(self) -> None:
        self._modes = dict(_modes())
        self._random = _random_state()
        self._functions = {name: dict(vars(space)) for name, space in _LIBRARY.items()}

    def changes(self) -> tuple[str, ...]:
        """What is otherwise now, in words."""
        now = dict(_modes())
        found = [f"{name}: {self._modes[name]} -> {now[name]}" for name in now if now[name] != self._modes[name]]
        if not _equal(self._random, _random_state()):
            found.append("the state of the random numbers")
        for name, space in _LIBRARY.items():
            present, known = vars(space), self._functions[name]
            changed = [each for each in known if callable(known[each]) and present.get(each) is not known[each]]
            if isinstance(space, type):  # what is put before something that it inherits
                changed += [each for each in present if each not in known and hasattr(space.__base__, each)]
            found += [f"{name}.{each}" for each in changed if not _from_torch(present.get(each))]
        return tuple(found)


def _from_torch(function: object) -> bool:
    """Whether a function's code is torch's own: its compiler wraps a few when it is first used."""
    code = getattr(function, "__code__", None)
    return str(getattr(code, "co_filename", "")).startswith(_TORCH)


def _modes() -> Iterator[tuple[str, str]]:
    for name, mode in _MODES.items():
        yield name, str(mode())
    up, down = _ONE + _BELOW_ITS_ROUNDOFF != _ONE, -_ONE - _BELOW_ITS_ROUNDOFF != -_ONE
    yield "rounding", _ROUNDINGS.get((up, down), "to zero")
    yield "subnormal numbers", "kept" if _SMALLEST_NORMAL / 2 else "flushed to zero"
