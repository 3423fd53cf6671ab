"""Value recipes: the numbers of an input, from integer hashing and exact scaling alone.

A recipe turns the hash of (seed, element) into a value that the dtype holds exactly. There is no ``randn``, ``log`` or
``cos`` (they differ between devices and versions) and no random state, so a recipe gives the same bits on every device
and for any part of the tensor computed alone. All rows of an input differ, mostly in scale too: a candidate that uses
another row's mean, or one mean for all, cannot be right.

Arithmetic is int64 (wrapping) and float64 on the chosen device; the last step to the dtype is exact, except where a
recipe's docstring says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from reference.formats import FORMATS, Format

_GOLDEN, _MIX1, _MIX2 = -7046029254386353131, -4658895280553007687, -7723592293110705685  # splitmix64's, as int64
#: Elements computed at a time: int64 temporaries of 512 KiB stay in a core's cache; a GPU wants more, and has room.
_BLOCK = {"cpu": 1 << 16, "cuda": 1 << 26}
#: Integer recipes keep a row's sum at or below 2^22, so that float32 adds it exactly in any order (2^24 is the limit).
_EXACT_SUM = 1 << 22


@dataclass(frozen=True, order=True)
class Plant:
    """A special value at one element: ``what`` is a name of `SPECIALS`, ``index`` a flat row-major index."""

    what: str
    index: int

    def __str__(self) -> str:
        """The printed form, for example ``nan@5``."""
        return f"{self.what}@{self.index}"


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


Recipe = Callable[[Grid, Format], torch.Tensor]


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
    start = _hash(torch.tensor(seed + 1, dtype=torch.int64, device=device))
    return torch.argsort(_hash(torch.arange(count, dtype=torch.int64, device=device) + start))


def _shift(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift to the right (torch's ``>>`` on int64 keeps the sign)."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _hash(value: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64: a bijection of int64 that mixes every bit."""
    value = (value ^ _shift(value, 30)) * _MIX1
    value = (value ^ _shift(value, 27)) * _MIX2
    return value ^ _shift(value, 31)


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
    row_noise = _hash((row + 1) * _GOLDEN + seed)
    return Grid(row, column, length, _hash(row_noise + column * _GOLDEN), row_noise)


def _power(exponent: torch.Tensor) -> torch.Tensor:
    """2^exponent exactly, for exponents from -1022 to 1023."""
    return ((exponent + 1023) << 52).view(torch.float64)


def _scaled(value: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Value * 2^exponent in two exact steps, so that the scale itself may leave float64's normal range."""
    half = exponent >> 1
    return value * _power(half) * _power(exponent - half)


def _sign(grid: Grid) -> torch.Tensor:
    """1 or -1 for each element."""
    return 1 - 2 * (grid.noise & 1)


def _below(noise: torch.Tensor, count: int, shift: int = 33) -> torch.Tensor:
    """An integer in [0, count) from 31 bits of the hash, by multiplication (bias below 2^-9 for count <= 2^22)."""
    return ((_shift(noise, shift) & 0x7FFFFFFF) * count) >> 31


def _fraction(grid: Grid, fmt: Format) -> torch.Tensor:
    """Signed multiples of 2^-p in (-1, 1), p the format's precision in bits: exact in the format."""
    bits = fmt.precision
    magnitude = _shift(grid.noise, 64 - bits)
    sign = _sign(grid)
    return (magnitude * sign).to(torch.float64) * 2.0**-bits


def _spread(grid: Grid, low: int, high: int) -> torch.Tensor:
    """A power of two for each row, exponent in [low, high]."""
    return low + _below(grid.row_noise, high - low + 1)


def _signed(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in (-1, 1) times 2^-3 to 2^3 by row."""
    return _scaled(_fraction(grid, fmt), _spread(grid, -3, 3))


def _positive(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in [0, 1), every row alike: what the shipped ``torch.rand`` input looks like."""
    return _fraction(grid, fmt).abs()


def _heavy(grid: Grid, fmt: Format) -> torch.Tensor:
    """Mostly small, few large: magnitude 2^k with probability 2^-k, up to 2^10 (float16) or 2^30."""
    most = 10 if fmt.name == "float16" else 30
    bits = (grid.noise >> 1) | 1 << most
    return _fraction(grid, fmt) * (bits & -bits).to(torch.float64)  # the lowest bit set: 2^(trailing zeros)


def _mixed(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every element with a scale of its own, 2^-20 to 2^20 (float16: 2^-3 to 2^10)."""
    low, high = (-3, 10) if fmt.name == "float16" else (-20, 20)
    return _scaled(_fraction(grid, fmt), low + _below(grid.noise, high - low + 1, 5))


def _row_scales(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row at a scale of its own, over most of the type's normal range: an added epsilon cannot hide."""
    low, high = {"float16": (-3, 12), "float64": (-700, 700)}.get(fmt.name, (-90, 90))
    return _scaled(_fraction(grid, fmt), _spread(grid, low, high))


def _any_scale(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row at a scale of its own, from 64 quanta up to where a sum of the row still is below half of 2^overflow.

    `row-scales` ends where nobody's epsilon reaches. Towards either end other things happen: elements lose bits, and
    the reciprocal of a long row's sum is subnormal though its mean is not.
    """
    if fmt.name == "float16":  # sums are of a wider type
        high = fmt.overflow_exponent
    else:
        high = fmt.overflow_exponent - 1 - (grid.columns - 1).bit_length()
    exponent = _spread(grid, fmt.quantum_exponent + 6, high)
    lost = _power((fmt.quantum_exponent + fmt.precision - exponent).clamp_min(0))  # what lies below a quantum
    steps = (_fraction(grid, fmt) * 2.0**fmt.precision / lost).trunc() * lost
    return _scaled(steps, exponent - fmt.precision)


def _tiny(grid: Grid, fmt: Format) -> torch.Tensor:
    """Up to 64 smallest subnormals times 2^0 to 2^11 by row: means whose reciprocal overflows."""
    count = (1 + _below(grid.noise, 64)) * _sign(grid)
    return _scaled(count.to(torch.float64) * fmt.quantum, _spread(grid, 0, 11))


def _huge(grid: Grid, fmt: Format) -> torch.Tensor:
    """Up to the largest finite value, by row 2^0 to 2^-6 of it: sums overflow, means pass 2^126."""
    return _scaled(_fraction(grid, fmt), fmt.overflow_exponent + _spread(grid, -6, 0))


def _integers(grid: Grid, _: Format) -> torch.Tensor:
    """-4 to 4, thinned out in long rows so that every sum is exact in float32 whatever the order."""
    value = _below(grid.noise, 9) - 4
    if 4 * grid.columns > _EXACT_SUM:
        rare = 4 * grid.columns // _EXACT_SUM + 1
        value = value * (_below(grid.noise, rare, 3) == 0)
    return _scaled(value.to(torch.float64), _spread(grid, -3, 3))


def _pairs(grid: Grid) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Columns 2k and 2k + 1: the hash that they share, which is the first of its two, and which has no second."""
    even = grid.column & 1 == 0
    return _hash(grid.row_noise + (grid.column >> 1) * _MIX1), even, even & (grid.column == grid.columns - 1)


def _exact_mean(grid: Grid, _: Format) -> torch.Tensor:
    """Pairs of magnitudes (1, 1), (2, 0) or (0, 2), so S = n for even n; by row times 2^-3 to 2^3.

    In rows longer than 2^22 only every so many pairs are non-zero, so the sum stays exact.
    """
    pairs, even, lonely = _pairs(grid)
    choice = _below(pairs, 3)
    two = torch.where(even, choice == 1, choice == 2)
    one = choice == 0
    magnitude = torch.where(one | lonely, 1, torch.where(two, 2, 0))
    if grid.columns > _EXACT_SUM:
        rare = -(-grid.columns // _EXACT_SUM)
        magnitude = magnitude * ((grid.column >> 1) % rare == 0)
    return _scaled((magnitude * _sign(grid)).to(torch.float64), _spread(grid, -3, 3))


def _grains(grid: Grid, fmt: Format) -> torch.Tensor:
    """Dense rows of as many bits as leave their sum exact, without a zero where it can be; by row times 2^-3 to 2^3.

    A program that treats rows with zeros, or with few different values, otherwise than all others is seen here.
    """
    most = max(1, min(_EXACT_SUM // max(grid.columns, 1), 1 << (fmt.precision - 1)))
    magnitude = 1 + _below(grid.noise, most)
    if grid.columns > _EXACT_SUM:
        rare = -(-grid.columns // _EXACT_SUM)
        magnitude = magnitude * (grid.column % rare == 0)
    return _scaled((magnitude * _sign(grid)).to(torch.float64), _spread(grid, -3, 3))


def _one_hot(grid: Grid, _: Format) -> torch.Tensor:
    """One element a row is +-2^-3 to +-2^3, all others are zeros of either sign: the result there is +-n."""
    place = _shift(grid.row_noise, 1) % max(grid.columns, 1)
    sign = _sign(grid).to(torch.float64)
    return _scaled((grid.column == place).to(torch.float64) * sign, _spread(grid, -3, 3))


def _one_full(grid: Grid, fmt: Format) -> torch.Tensor:
    """One element a row has all the bits of its type, all others are zeros: exact in any order, at any length.

    A mean that is taken of rounded inputs shows here and nowhere else.
    """
    place = _shift(grid.row_noise, 1) % max(grid.columns, 1)
    bits = fmt.precision
    magnitude = _shift(grid.noise, 64 - bits) | 1 << (bits - 1)
    full = (magnitude * _sign(grid)).to(torch.float64) * 2.0**-bits
    return torch.where(grid.column == place, full, 0.0)


def _one_tall(grid: Grid, fmt: Format) -> torch.Tensor:
    """One element a row is 2^22 (float16: 2^13) times as large as all others, or more, and has all the bits it can.

    It stands first, last or anywhere: whoever leaves out an end of a row, or rounds what is dense, is seen in any type
    and at any length. Sums are exact in any order. By row times 2^-3 to 2^3.
    """
    most = 14 if fmt.name == "float16" else 23
    bits = min(fmt.precision, most)
    anywhere = _shift(grid.row_noise, 3) % max(grid.columns, 1)
    where = grid.row_noise & 3
    place = torch.where(where == 0, 0, torch.where(where == 1, grid.columns - 1, anywhere))
    tall = (_shift(grid.noise, 64 - bits) | 1 << (bits - 1)) << (most - bits)
    magnitude = torch.where(grid.column == place, tall, 1)
    if grid.columns > _EXACT_SUM:
        rare = -(-grid.columns // _EXACT_SUM)
        magnitude = magnitude * ((grid.column == place) | (grid.column % rare == 0))
    value = (magnitude * _sign(grid)).to(torch.float64) * 2.0 ** -(most - 2)
    return _scaled(value, _spread(grid, -2, 3))


def _sparse(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, but of a long row only some sixteen elements are no zeros: each of them shows in the mean."""
    there = _below(_hash(grid.noise), max(grid.columns // 16, 1)) == 0
    return _signed(grid, fmt) * there


def _outlier(grid: Grid, fmt: Format) -> torch.Tensor:
    """Ones, and one element a row of 2^30 (float16: 2^14): zeros elsewhere would pass an absolute tolerance."""
    place = _shift(grid.row_noise, 1) % max(grid.columns, 1)
    large = 2.0**14 if fmt.name == "float16" else 2.0**30
    return torch.where(grid.column == place, large, 1.0).to(torch.float64) * _sign(grid)


def _part(grid: Grid, fmt: Format, first: torch.Tensor | int, length: torch.Tensor) -> torch.Tensor:
    """`signed` from a column on, for as many as there are of it, and zeros elsewhere."""
    return torch.where((grid.column >= first) & (grid.column < first + length), _signed(grid, fmt), 0.0)


def _padded(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed` up to a column between half of the row and its end, another in each row, and zeros behind: padding."""
    return _part(grid, fmt, 0, grid.columns - _below(grid.row_noise, grid.columns // 2 + 1))


def _padded_before(grid: Grid, fmt: Format) -> torch.Tensor:
    """The same with the zeros in front, in every third row or so half of them in front and half behind."""
    zeros = _below(grid.row_noise, grid.columns // 2 + 1)
    first = torch.where(_below(grid.row_noise, 3, 17) == 0, zeros // 2, zeros)
    return _part(grid, fmt, first, grid.columns - zeros)


def _half(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, but what is negative is zero: what an activation leaves."""
    return _signed(grid, fmt).clamp_min(0.0)


def _sorted(grid: Grid, fmt: Format) -> torch.Tensor:
    """Rows that rise from -1 to 1 in steps that the type holds exactly, or fall; by row times 2^-3 to 2^3."""
    steps = 2 ** min(fmt.precision, 24)
    place = ((2 * grid.column + 1) * (steps // 2)) // max(grid.columns, 1) - steps // 2
    rises = 1 - 2 * (grid.row_noise & 1)
    return _scaled((place * rises).to(torch.float64) * (2.0 / steps), _spread(grid, -3, 3))


def _masked(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and beyond a place that moves on with every row all is minus infinity: a causal mask."""
    last = grid.row % max(grid.columns, 1)
    return torch.where(grid.column <= last, _signed(grid, fmt), -torch.inf)


def _constant(grid: Grid, fmt: Format) -> torch.Tensor:
    """One value a row, repeated: the result is +-1."""
    one = Grid(grid.row, grid.column, grid.columns, grid.row_noise | 1 << 62, grid.row_noise)
    return _signed(one, fmt).expand(grid.noise.shape).clone()


def _alternating(grid: Grid, fmt: Format) -> torch.Tensor:
    """One magnitude a row, its signs in turn: without them all columns are alike, with them their sum is nothing."""
    return _constant(grid, fmt).abs() * (1 - 2 * (grid.column & 1))


def _ones(grid: Grid, _: Format) -> torch.Tensor:
    """All ones: a sum in the storage type sticks at 2048 (float16) or 256 (bfloat16)."""
    return torch.ones_like(grid.noise, dtype=torch.float64)


def _zeros(grid: Grid, _: Format) -> torch.Tensor:
    """All zeros, of either sign: every result is NaN."""
    return torch.zeros_like(grid.noise, dtype=torch.float64) * _sign(grid)


def _nearly_constant(grid: Grid, fmt: Format) -> torch.Tensor:
    """A base with little upon it, of any sign: 1024 (bfloat16: 128) to 4 more, more often less; times 2^-3 to 2^3."""
    base = min(fmt.precision, 11) - 1
    magnitude = (1 << base) + _below(grid.noise, 5) * _below(grid.noise, 2, 7)
    return _scaled((magnitude * _sign(grid)).to(torch.float64), _spread(grid, -3 - base, 3 - base))


def _levels(grid: Grid, fmt: Format) -> torch.Tensor:
    """Multiples of 1/255 from 0 to 1, as images have them, rounded to the type."""
    level = _below(grid.noise, 256)
    leading = torch.stack([level < 1 << bit for bit in range(1, 8)]).sum(0)  # zeros in front, of eight bits
    bits = ((level << (leading + fmt.precision)) + 127) // 255
    return _scaled(bits.to(torch.float64), -(leading + fmt.precision))


def _shares(grid: Grid, fmt: Format) -> torch.Tensor:
    """Positive rows whose sum is 1 to a part in 2^9 (bfloat16: 2^6), as that of probabilities; by pairs of columns."""
    count = max(grid.columns, 1)
    scale = (count - 1).bit_length() + min(fmt.precision, 11) - 3
    if fmt.name == "float16":
        scale = min(scale, 24)
    share = max(1, ((1 << scale) + count // 2) // count)
    pairs, even, lonely = _pairs(grid)
    uneven = _below(pairs, share)
    magnitude = share + torch.where(lonely, 0, torch.where(even, uneven, -uneven))
    return _scaled(magnitude.to(torch.float64), torch.full_like(magnitude, -scale))


def _zero_rows(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row is either all zero or `signed`: zero rows are NaN and do not touch their neighbours."""
    return _signed(grid, fmt) * (_below(grid.row_noise, 2, 13) == 0)


def _near_max(grid: Grid, fmt: Format) -> torch.Tensor:
    """Constant magnitude at the largest finite value: [1, -1, ...], or zeros where the sum overflowed."""
    return _sign(grid).to(torch.float64) * fmt.largest


RECIPES: dict[str, Recipe] = {
    "ones": _ones,
    "signed": _signed,
    "positive": _positive,
    "heavy": _heavy,
    "mixed": _mixed,
    "row-scales": _row_scales,
    "any-scale": _any_scale,
    "tiny": _tiny,
    "huge": _huge,
    "integers": _integers,
    "exact-mean": _exact_mean,
    "one-hot": _one_hot,
    "one-full": _one_full,
    "grains": _grains,
    "one-tall": _one_tall,
    "sparse": _sparse,
    "padded": _padded,
    "padded-before": _padded_before,
    "half": _half,
    "sorted": _sorted,
    "masked": _masked,
    "outlier": _outlier,
    "constant": _constant,
    "alternating": _alternating,
    "nearly-constant": _nearly_constant,
    "levels": _levels,
    "shares": _shares,
    "zeros": _zeros,
    "zero-rows": _zero_rows,
    "near-max": _near_max,
}
