"""The values of an input, from a recipe's name and a seed alone: the same bits on every device and in every part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from reference.formats import FORMATS, Format

from .hashing import GOLDEN, Grid, Recipe, hashed
from .lookalikes import LOOKALIKES
from .recipes import PLAIN

#: Elements computed at a time: int64 temporaries of 512 KiB stay in a core's cache; a GPU wants more, and has room.
_BLOCK = {"cpu": 1 << 16, "cuda": 1 << 26}
RECIPES: dict[str, Recipe] = PLAIN | LOOKALIKES


@dataclass(frozen=True, order=True)
class Plant:
    """A special value at one element: ``what`` is a name of `SPECIALS`, ``index`` a flat row-major index."""

    what: str
    index: int

    def __str__(self) -> str:
        """The printed form, for example ``nan@5``."""
        return f"{self.what}@{self.index}"


def fill(
    shape: tuple[int, ...],
    dtype: str,
    recipe: str,
    seed: int,
    plants: tuple[Plant, ...] = (),
    device: str = "cpu",
) -> torch.Tensor:
    """The values of an input, contiguous.

    Args:
        shape: sizes; dimension 1 is the column index.
        dtype: torch dtype name.
        recipe: a key of `RECIPES`.
        seed: any int64.
        plants: special values, put last.
        device: where to compute; the bits do not depend on it.
    """
    fmt = FORMATS[dtype]
    tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=device)
    blocks = tensor.view(shape[0], shape[1], math.prod(shape[2:]))
    for rows, columns in _blocks(blocks.shape, _BLOCK[torch.device(device).type]):
        blocks[rows, columns] = RECIPES[recipe](_grid(blocks.shape, seed, device, rows, columns), fmt).to(tensor.dtype)
    flat = tensor.view(-1)
    for plant in plants:
        flat[plant.index] = special(plant.what, fmt)
    return tensor


def special(name: str, fmt: Format) -> float:
    """The value of a plant's name in a format."""
    sign = -1.0 if name.startswith("-") else 1.0
    sizes = {
        "nan": float("nan"),
        "inf": float("inf"),
        "0": 0.0,
        "max": fmt.largest,
        "normal": math.ldexp(fmt.quantum, fmt.precision - 1),
        "sub": fmt.quantum,
        "one": 1.0,
    }
    return sign * sizes[name.lstrip("-")]


#: Names a plant may have: the value, and for all but NaN its negative.
SPECIALS = ("nan", "inf", "-inf", "0", "-0", "max", "-max", "normal", "-normal", "sub", "-sub", "one", "-one")


def order(count: int, seed: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """An order of ``count`` things: a permutation of their numbers, the same for a seed on every device."""
    start = hashed(torch.tensor(seed + 1, dtype=torch.int64, device=device))
    return torch.argsort(hashed(torch.arange(count, dtype=torch.int64, device=device) + start))


def _blocks(shape: torch.Size, most: int) -> Iterator[tuple[slice, slice]]:
    """Cut [outer, columns, inner] into blocks of about ``most`` elements; empty shapes have none."""
    outer, columns, inner = shape
    if outer * columns * inner == 0:
        return
    width = max(1, min(columns, most // inner))
    height = max(1, most // (width * inner))
    for row in range(0, outer, height):
        for column in range(0, columns, width):
            yield slice(row, min(row + height, outer)), slice(column, min(column + width, columns))


def _grid(shape: torch.Size, seed: int, device: str, rows: slice, columns: slice) -> Grid:
    _, length, inner = shape

    def axis(part: slice) -> torch.Tensor:
        return torch.arange(part.start, part.stop, dtype=torch.int64, device=device)

    row = axis(rows)[:, None, None] * inner + axis(slice(0, inner))[None, None, :]
    column = axis(columns)[None, :, None]
    row_noise = hashed((row + 1) * GOLDEN + seed)
    return Grid(row, column, length, hashed(row_noise + column * GOLDEN), row_noise)
