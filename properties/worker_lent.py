"""A call on a few rows of a larger tensor, in memory that torch itself has, which the model alone holds while it runs.

All other inputs lie in memory of the judging process, over which a worker has a tensor that it keeps by name. Who looks
at how many names a tensor has, and takes one without any for its own, or gives its memory back, is seen here alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .worker_ways import BITS

_empty, _equal = torch.empty, torch.equal
_clone, _copy, _fill = torch.Tensor.clone, torch.Tensor.copy_, torch.Tensor.fill_
_rows, _view_dtype = torch.Tensor.narrow, torch.Tensor.view
_storage, _nbytes = torch.Tensor.untyped_storage, torch.UntypedStorage.nbytes
#: Rows that lie behind those which are handed over.
_MORE = 3


class Lent:
    """A larger tensor; rows of it are handed over, and come back as they were.

    Args:
        given: the rows; they are copied, and lie behind each other then.
    """

    def __init__(self, given: torch.Tensor) -> None:
        self._count = given.shape[0]
        self._whole = _empty((self._count + _MORE, *given.shape[1:]), dtype=given.dtype, device=given.device)
        _copy(_rows(self._whole, 0, 0, self._count), given)
        _fill(_rows(self._whole, 0, self._count, _MORE), 1.0)
        self._before = _clone(self._whole)
        self._size = _nbytes(_storage(self._whole))

    def call(self, model: Callable[..., object]) -> object:
        """What the model makes of the rows, a view that has no other name."""
        return model(_rows(self._whole, 0, 0, self._count))

    def changes(self) -> tuple[str, ...]:
        """What is otherwise now, in words."""
        size = _nbytes(_storage(self._whole))
        if size != self._size:
            return (f"bytes of the storage that it is a part of {self._size} -> {size}",)
        bits = BITS[self._whole.element_size()]
        same = _equal(_view_dtype(self._whole, bits), _view_dtype(self._before, bits))
        return () if same else ("values of the tensor that it is a part of",)
