"""Where each element of an input stands, and the hash that its value comes from: arithmetic that is alike everywhere.

int64 (wrapping) and float64 alone, on any device. There is no ``randn``, ``log`` or ``cos`` (they differ between
devices and versions) and no random state, so the bits are the same on every device, and for any part of a tensor that
is computed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from reference.formats import Format

GOLDEN, MIX1, MIX2 = -7046029254386353131, -4658895280553007687, -7723592293110705685  # splitmix64's, as int64


@dataclass(frozen=True)
class Grid:
    """Where each element stands: int64 tensors of one shape, and the hash of each element and of each row.

    Attributes:
        row: number of the element's row (all dimensions but dimension 1, row-major).
        column: index along dimension 1.
        columns: size of dimension 1.
        noise: hash of (seed, row, column).
        row_noise: hash of (seed, row).
    """

    row: torch.Tensor
    column: torch.Tensor
    columns: int
    noise: torch.Tensor
    row_noise: torch.Tensor


#: Turns the hashes of a grid into values, as float64, that a format holds exactly (`recipes`, `lookalikes`).
Recipe = Callable[[Grid, Format], torch.Tensor]


def shift(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift to the right (torch's ``>>`` on int64 keeps the sign)."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def hashed(value: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64: a bijection of int64 that mixes every bit."""
    value = (value ^ shift(value, 30)) * MIX1
    value = (value ^ shift(value, 27)) * MIX2
    return value ^ shift(value, 31)


def power(exponent: torch.Tensor) -> torch.Tensor:
    """2^exponent exactly, for exponents from -1022 to 1023."""
    return ((exponent + 1023) << 52).view(torch.float64)


def scaled(value: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Value * 2^exponent in two exact steps, so that the scale itself may leave float64's normal range."""
    half = exponent >> 1
    return value * power(half) * power(exponent - half)


def sign(grid: Grid) -> torch.Tensor:
    """1 or -1 for each element."""
    return 1 - 2 * (grid.noise & 1)


def below(noise: torch.Tensor, count: int, low: int = 33) -> torch.Tensor:
    """An integer in [0, count) from 31 bits of the hash, by multiplication (bias below 2^-9 for count <= 2^22)."""
    return ((shift(noise, low) & 0x7FFFFFFF) * count) >> 31


def fraction(grid: Grid, fmt: Format) -> torch.Tensor:
    """Signed multiples of 2^-p in (-1, 1), p the format's precision in bits: exact in the format."""
    return multiples(grid, fmt.precision)


def multiples(grid: Grid, bits: int) -> torch.Tensor:
    """Signed multiples of 2^-bits in (-1, 1)."""
    magnitude = shift(grid.noise, 64 - bits)
    return (magnitude * sign(grid)).to(torch.float64) * 2.0**-bits


def column_noise(grid: Grid) -> torch.Tensor:
    """A hash of each column's index alone, the same in every row and for every seed."""
    return hashed(grid.column * MIX1)


def spread(grid: Grid, low: int, high: int) -> torch.Tensor:
    """A power of two for each row, exponent in [low, high]."""
    return low + below(grid.row_noise, high - low + 1)


def signed(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in (-1, 1) times 2^-3 to 2^3 by row."""
    return scaled(fraction(grid, fmt), spread(grid, -3, 3))


def pairs(grid: Grid) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Columns 2k and 2k + 1: the hash that they share, which is the first of its two, and which has no second."""
    even = grid.column & 1 == 0
    return hashed(grid.row_noise + (grid.column >> 1) * MIX1), even, even & (grid.column == grid.columns - 1)
