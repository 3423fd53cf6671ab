"""A call on memory that torch itself has, or numpy, which the model alone names while it runs.

All other inputs lie in memory of the judging process, which cannot grow or be given back, and a worker keeps a tensor
on it by name. Who looks at how many names a tensor has, and takes one without any for its own, or gives its memory
back, is seen here alone: what is handed over is part of something else, or its memory, as a user's may be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch

from .protocol import LENT
from .worker_ways import BITS

_empty, _equal = torch.empty, torch.equal
_clone, _copy, _fill = torch.Tensor.clone, torch.Tensor.copy_, torch.Tensor.fill_
_part, _view_dtype, _detach = torch.Tensor.narrow, torch.Tensor.view, torch.Tensor.detach
_share: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.share_memory_
_storage, _nbytes, _address = torch.Tensor.untyped_storage, torch.UntypedStorage.nbytes, torch.Tensor.data_ptr
_numpy, _from_numpy, _bfloat16 = torch.Tensor.numpy, torch.from_numpy, torch.bfloat16
#: Rows that lie behind those which are handed over.
_MORE = 3

ROWS, WHOLE, DETACHED, ARRAY, SHARED = LENT


class Lent:
    """A tensor of which something is handed over, and which comes back as it was.

    Args:
        given: the values; they are copied, and lie row behind row then.
        what: one of `protocol.LENT`. Where numpy has no such memory it is a tensor without its history; where there is
            no room for what is shared it stays torch's own.
    """

    def __init__(self, given: torch.Tensor, what: str) -> None:
        self._count, self._what = given.shape[0], what
        more = _MORE if what == ROWS else 0
        self._whole = _empty((self._count + more, *given.shape[1:]), dtype=given.dtype, device=given.device)
        _copy(_part(self._whole, 0, 0, self._count), given)
        _fill(_part(self._whole, 0, self._count, more), 1.0)
        if what == SHARED:
            with contextlib.suppress(RuntimeError):
                _share(self._whole)
        if what == ARRAY and (given.is_cuda or given.dtype == _bfloat16):
            self._what = DETACHED
        self._array = _numpy(self._whole) if self._what == ARRAY else None
        self._before = _clone(self._whole)
        self._memory = self._place()

    def call(self, model: Callable[..., object]) -> object:
        """What the model makes of it; but for a whole tensor it has no other name."""
        if self._what == ROWS:
            return model(_part(self._whole, 0, 0, self._count))
        if self._what == DETACHED:
            return model(_detach(self._whole))
        if self._array is not None:
            return model(_from_numpy(self._array))
        return model(self._whole)

    def changes(self) -> tuple[str, ...]:
        """What is otherwise now, in words."""
        size, address = self._place()
        if size != self._memory[0]:
            return (f"bytes of the storage that it is a part of {self._memory[0]} -> {size}",)
        if address != self._memory[1]:
            return ("the memory of the tensor that it is a part of",)
        bits = BITS[self._whole.element_size()]
        same = _equal(_view_dtype(self._whole, bits), _view_dtype(self._before, bits))
        return () if same else ("values of the tensor that it is a part of",)

    def _place(self) -> tuple[int, int]:
        return _nbytes(_storage(self._whole)), _address(self._whole)
