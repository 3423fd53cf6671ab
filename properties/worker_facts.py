"""What a worker's tensor objects say of themselves: the input as its caller holds it; how many there are.

All of it is bound when this module is imported, which is before any candidate is.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator

import torch

from .protocol import printable

_Tensor = torch.Tensor
_objects, _collect, _blocks = gc.get_objects, gc.collect, sys.getallocatedblocks


def attribute(name: str) -> Callable[[torch.Tensor], object]:
    """An attribute of tensors as it is now, whatever is put in its place later."""
    getter: Callable[[torch.Tensor], object] = inspect.getattr_static(_Tensor, name).__get__
    return getter


#: How names begin that torch's compiler gives its notes on a tensor (`torch._dynamo.mark_dynamic`).
_COMPILERS = ("_dynamo_", "_has_dynamo", "_specialize_on")


def carried(tensor: torch.Tensor) -> Iterator[str]:
    """Names of what it carries beside its values; what torch's compiler notes on every tensor is nobody's."""
    return (printable(name).replace("\n", "\\n") for name in map(str, vars(tensor)) if not name.startswith(_COMPILERS))


_gradient = attribute("grad")
#: What a tensor object says of itself, by the words of a report.
_FACTS: dict[str, Callable[[torch.Tensor], object]] = {
    "shape": _Tensor.size,
    "strides": _Tensor.stride,
    "storage offset": _Tensor.storage_offset,
    "dtype": attribute("dtype"),
    "requires_grad": attribute("requires_grad"),
    "negative bit": _Tensor.is_neg,
    "memory": _Tensor.data_ptr,
    "class": type,
    "attributes": lambda tensor: tuple(sorted(carried(tensor))),
    "whether it has a gradient": lambda tensor: _gradient(tensor) is not None,
}
_version = attribute("_version")


def count(collected: bool) -> dict[str, int]:
    """How many tensors the process has, whoever holds them, and how many objects there are in Python at all.

    Args:
        collected: whether those count no more which only Python's collector can find.
    """
    if collected:
        _collect()
    tensors = sum(issubclass(type(each), _Tensor) for each in _objects())
    return {"tensors": tensors, "objects": _blocks()}


class InputWatch:
    """A tensor as its caller holds it, before a call."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._facts = _facts(tensor)
        self._version = told(_version, tensor)

    def changes(self) -> tuple[str, ...]:
        """What the caller's tensor says otherwise now, in words."""
        now = _facts(self._tensor)
        return tuple(
            f"{name} {_said(old)} -> {_said(now[name])}" for name, old in self._facts.items() if old != now[name]
        )

    @property
    def written(self) -> bool:
        """Whether an operation has written to the tensor, whatever it holds now."""
        return told(_version, self._tensor) != self._version


def _facts(tensor: torch.Tensor) -> dict[str, object]:
    return {name: told(fact, tensor) for name, fact in _FACTS.items()}


def told(asked: Callable[..., object], *of: object) -> object:
    """What is answered; a word where the question raises, the same one while it raises the same."""
    try:
        return asked(*of)
    except Exception as error:  # noqa: BLE001 - what is asked may be the candidate's by now, and torch refuses some
        return f"cannot be told ({type(error).__name__})"


def _said(fact: object) -> str:
    return str(list(fact)) if isinstance(fact, tuple) else str(fact)
