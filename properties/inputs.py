"""From a case to an input: the storage's bytes, canaries included, and how the view lies in them.

Every byte of the storage that the view does not show holds a *canary*, a NaN with a payload of its own: if it is read
it poisons the row it leaks into, and if it is written the judge sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import layouts, values
from .cases import Case

#: NaN payloads, one per element size, as the little-endian bits of an element. They differ from the default NaN and
#: from the poison of fresh output memory, so that a report can tell the three apart.
CANARY_BITS = {"float16": 0x7EA5, "bfloat16": 0x7FA5, "float32": 0x7FA5A5A5, "float64": 0x7FF5A5A5A5A5A5A5}
_BITS_TYPE = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Input:
    """An input ready to be placed in memory that a worker can see.

    Attributes:
        dtype: torch dtype name.
        shape: sizes of the view.
        geometry: strides, storage offset and length of the storage, in elements.
        negated: whether the view is lazily negated.
        storage: 1-D tensor of ``geometry.length`` elements of ``dtype``: values and canaries.
        logical: contiguous tensor of ``shape``: what the candidate is to see.
        requires_grad: whether the candidate's input asks for a gradient.
    """

    dtype: str
    shape: tuple[int, ...]
    geometry: layouts.Geometry
    negated: bool
    storage: torch.Tensor
    logical: torch.Tensor
    requires_grad: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.storage.numel() * self.storage.element_size()

    def view_of(self, storage: torch.Tensor) -> torch.Tensor:
        """The elements of the view, but not negated, in a 1-D tensor that is as long as the storage."""
        return storage.as_strided(self.shape, self.geometry.strides, self.geometry.offset)


def build(case: Case, device: str = "cpu") -> Input:
    """The input of a case, in memory of the judging process."""
    return place(case, case_values(case, device))


def case_values(case: Case, device: str = "cpu") -> torch.Tensor:
    """The logical values of a case: contiguous, of its shape and dtype, equal where elements share memory."""
    if case.layout.lap and case.numel:
        geometry = layouts.geometry(case.layout, case.shape)
        room = (1, geometry.length)
        plants = tuple(plant for plant in case.plants if plant.index < geometry.length)
        filled = values.fill(room, case.dtype, case.values, case.seed, plants, device)
        return _contiguous(filled.as_strided(case.shape, geometry.strides, geometry.offset))
    shape = list(case.shape)
    for dim in case.layout.expand:
        shape[dim] = min(shape[dim], 1)
    numel = 1
    for size in shape:
        numel *= size
    plants = tuple(plant for plant in case.plants if plant.index < numel)
    filled = values.fill(tuple(shape), case.dtype, case.values, case.seed, plants, device)
    return _contiguous(filled.expand(case.shape))


def _contiguous(values: torch.Tensor) -> torch.Tensor:
    """The values with the strides of a fresh tensor: `contiguous` leaves those of dimensions of one element."""
    return values.contiguous().as_strided(values.shape, torch.empty(values.shape, device="meta").stride())


def place(case: Case, logical: torch.Tensor) -> Input:
    """``logical`` laid out as the case's layout says, with canaries in every gap."""
    geometry = layouts.geometry(case.layout, case.shape)
    if case.layout == layouts.CONTIGUOUS:
        return Input(case.dtype, case.shape, geometry, False, logical.reshape(-1), logical)
    storage = canaries(case.dtype, geometry.length, logical.device)
    if case.layout.lap and logical.numel():
        places = torch.arange(geometry.length, device=logical.device)
        shown = places.as_strided(case.shape, geometry.strides, geometry.offset).reshape(-1)
        storage[shown] = (-logical if case.layout.negated else logical).reshape(-1)
    elif logical.numel():
        # Along an expanded dimension all elements share one place: write it once.
        index = tuple(slice(0, 1) if dim in case.layout.expand else slice(None) for dim in range(len(case.shape)))
        view = storage.as_strided(case.shape, geometry.strides, geometry.offset)
        view[index] = -logical[index] if case.layout.negated else logical[index]
    return Input(case.dtype, case.shape, geometry, case.layout.negated, storage, logical)


def canaries(dtype: str, length: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """``length`` elements of the dtype's canary."""
    torch_dtype: torch.dtype = getattr(torch, dtype)
    bits = _BITS_TYPE[torch_dtype.itemsize]
    return torch.full((length,), CANARY_BITS[dtype], dtype=bits, device=device).view(torch_dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bits as integers of the same size (a view)."""
    return tensor.view(_BITS_TYPE[tensor.element_size()])
