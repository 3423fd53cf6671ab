"""How a tensor lies in its storage: a layout that can be printed, parsed and turned into strides.

A layout is a set of tokens joined by ``+``; without tokens it is ``contiguous``:

    offset3       the view starts 3 elements into its storage
    pitch5        5 unused elements behind every innermost line (a row pitch, a column slice)
    step2         innermost elements lie 2 apart (a strided slice)
    order1.0      memory order of the dimensions, slowest first (1.0 is a transposed matrix, 0.2.3.1 channels_last)
    expand0       dimension 0 has stride 0
    cut1.3        dimension 1 is cut out of one that is 3 longer: they lie behind each piece of it, and behind the view
    lap2          what follows along the slowest dimension lies 2 further, into what came before (a sliding window)
    negated       a lazily negated view: the storage holds the negative values

All sizes are in elements. Strides are never negative (torch has none).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_TOKEN = re.compile(r"(offset|pitch|step|expand|lap)(\d+)|order(\d+(?:\.\d+)*)|(negated)|cut(\d+)\.(\d+)")


@dataclass(frozen=True)
class Geometry:
    """A layout applied to a shape.

    Attributes:
        strides: one per dimension, in elements.
        offset: storage offset of the first element, in elements.
        length: elements of the storage: up to the last one of the view, or of what the view is cut out of.
    """

    strides: tuple[int, ...]
    offset: int
    length: int


@dataclass(frozen=True)
class Layout:
    """See the module's docstring for the meaning of each field and its printed form."""

    offset: int = 0
    pitch: int = 0
    step: int = 1
    order: tuple[int, ...] = ()
    expand: tuple[int, ...] = ()
    negated: bool = False
    cut: tuple[int, ...] = ()
    lap: int = 0

    def __str__(self) -> str:
        """The printed form, ``contiguous`` or tokens joined by ``+``."""
        tokens = [f"expand{dim}" for dim in self.expand]
        if self.order:
            tokens.append("order" + ".".join(map(str, self.order)))
        if self.cut:
            tokens.append("cut" + ".".join(map(str, self.cut)))
        tokens += [f"{name}{value}" for name, value in self._lengths if value]
        if self.step != 1:
            tokens.append(f"step{self.step}")
        if self.negated:
            tokens.append("negated")
        return "+".join(tokens) or "contiguous"

    @property
    def _lengths(self) -> tuple[tuple[str, int], ...]:
        return ("offset", self.offset), ("pitch", self.pitch), ("lap", self.lap)

    @property
    def gaps(self) -> bool:
        """Whether elements lie apart, or in another order, whatever the sizes: a cut of dimension 0 leaves no gap."""
        return bool(self.pitch or self.step != 1 or self.order or self.cut[:1] > (0,))

    @property
    def shared(self) -> bool:
        """Whether elements share memory, whatever the sizes."""
        return bool(self.expand or self.lap)

    @property
    def strided(self) -> bool:
        """Whether strides differ from the contiguous ones, whatever the sizes."""
        return self.gaps or self.shared


CONTIGUOUS = Layout()


def parse(text: str) -> Layout:
    """The layout whose printed form is ``text``.

    Raises:
        ValueError: a token is unknown; the message names it and lists what is known.
    """
    if text == "contiguous":
        return CONTIGUOUS
    sizes = {"offset": 0, "pitch": 0, "step": 1, "lap": 0}
    order: tuple[int, ...] = ()
    expand: list[int] = []
    cut: tuple[int, ...] = ()
    negated = False
    for token in text.split("+"):
        match = _TOKEN.fullmatch(token)
        if match is None:
            known = "contiguous, offsetN, pitchN, stepN, orderI.J.K, expandI, cutI.N, lapN, negated"
            raise ValueError(f"unknown layout token {token!r} in {text!r}; known are {known}")
        if match[1] == "expand":
            expand.append(int(match[2]))
        elif match[1]:
            sizes[match[1]] = int(match[2])
        elif match[3]:
            order = tuple(int(part) for part in match[3].split("."))
        elif match[5]:
            cut = (int(match[5]), int(match[6]))
        else:
            negated = True
    if sizes["step"] < 1:
        raise ValueError(f"step must be at least 1 in {text!r}")
    return Layout(
        sizes["offset"], sizes["pitch"], sizes["step"], order, tuple(expand), negated, cut=cut, lap=sizes["lap"]
    )


def geometry(layout: Layout, shape: tuple[int, ...]) -> Geometry:
    """Strides, offset and storage length of a view of ``shape``.

    Raises:
        ValueError: the layout's dimension numbers do not fit the shape's rank.
    """
    rank = len(shape)
    order = layout.order or tuple(range(rank))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"order {'.'.join(map(str, order))} does not name each of the {rank} dimensions once")
    if any(dim >= rank for dim in layout.expand):
        raise ValueError(f"expand names a dimension beyond the rank {rank}: {layout.expand}")
    if layout.cut and layout.cut[0] >= rank:
        raise ValueError(f"cut names a dimension beyond the rank {rank}: {layout.cut[0]}")
    strides = [0] * rank
    stride, lines = layout.step, 0
    for dim in reversed(order):
        if dim in layout.expand:
            continue
        strides[dim] = stride
        stride *= max(shape[dim], 1) + (layout.cut[1] if layout.cut[:1] == (dim,) else 0)
        if lines == 0:
            stride += layout.pitch
        lines += 1
    if layout.lap:
        strides[order[0]] = layout.lap
    if math.prod(shape) == 0:
        return Geometry(tuple(strides), layout.offset, layout.offset)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return Geometry(tuple(strides), layout.offset, layout.offset + (stride if layout.cut else last + 1))
