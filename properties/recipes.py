"""Value recipes: the ends of a type's range, every scale between, sums that are exact, rows that few elements decide.

All rows of an input differ, mostly in scale too: a candidate that uses another row's mean, or one mean for all, cannot
be right. The last step to the dtype is exact, except where a recipe's docstring says otherwise.
"""

from __future__ import annotations

import torch

from reference.formats import Format

from .hashing import Grid, Recipe, below, fraction, hashed, pairs, power, scaled, shift, sign, signed, spread

#: Integer recipes keep a row's sum at or below 2^22, so that float32 adds it exactly in any order (2^24 is the limit).
EXACT_SUM = 1 << 22


def _positive(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in [0, 1), every row alike: what the shipped ``torch.rand`` input looks like."""
    return fraction(grid, fmt).abs()


def _heavy(grid: Grid, fmt: Format) -> torch.Tensor:
    """Mostly small, few large: magnitude 2^k with probability 2^-k, up to 2^10 (float16) or 2^30."""
    most = 10 if fmt.name == "float16" else 30
    bits = (grid.noise >> 1) | 1 << most
    return fraction(grid, fmt) * (bits & -bits).to(torch.float64)  # the lowest bit set: 2^(trailing zeros)


def _mixed(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every element with a scale of its own, 2^-20 to 2^20 (float16: 2^-3 to 2^10)."""
    low, high = (-3, 10) if fmt.name == "float16" else (-20, 20)
    return scaled(fraction(grid, fmt), low + below(grid.noise, high - low + 1, 5))


def _row_scales(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row at a scale of its own, over most of the type's normal range: an added epsilon cannot hide."""
    low, high = {"float16": (-3, 12), "float64": (-700, 700)}.get(fmt.name, (-90, 90))
    return scaled(fraction(grid, fmt), spread(grid, low, high))


def _any_scale(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row at a scale of its own, from 64 quanta up to where a sum of the row still is below half of 2^overflow.

    `row-scales` ends where nobody's epsilon reaches. Towards either end other things happen: elements lose bits, and
    the reciprocal of a long row's sum is subnormal though its mean is not.
    """
    if fmt.name == "float16":  # sums are of a wider type
        high = fmt.overflow_exponent
    else:
        high = fmt.overflow_exponent - 1 - (grid.columns - 1).bit_length()
    exponent = spread(grid, fmt.quantum_exponent + 6, high)
    lost = power((fmt.quantum_exponent + fmt.precision - exponent).clamp_min(0))  # what lies below a quantum
    steps = (fraction(grid, fmt) * 2.0**fmt.precision / lost).trunc() * lost
    return scaled(steps, exponent - fmt.precision)


def _tiny(grid: Grid, fmt: Format) -> torch.Tensor:
    """Up to 64 smallest subnormals times 2^0 to 2^11 by row: means whose reciprocal overflows."""
    count = (1 + below(grid.noise, 64)) * sign(grid)
    return scaled(count.to(torch.float64) * fmt.quantum, spread(grid, 0, 11))


def _huge(grid: Grid, fmt: Format) -> torch.Tensor:
    """Up to the largest finite value, by row 2^0 to 2^-6 of it: sums overflow, means pass 2^126."""
    return scaled(fraction(grid, fmt), fmt.overflow_exponent + spread(grid, -6, 0))


def _integers(grid: Grid, _: Format) -> torch.Tensor:
    """-4 to 4, thinned out in long rows so that every sum is exact in float32 whatever the order."""
    value = below(grid.noise, 9) - 4
    if 4 * grid.columns > EXACT_SUM:
        rare = 4 * grid.columns // EXACT_SUM + 1
        value = value * (below(grid.noise, rare, 3) == 0)
    return scaled(value.to(torch.float64), spread(grid, -3, 3))


def _exact_mean(grid: Grid, _: Format) -> torch.Tensor:
    """Pairs of magnitudes (1, 1), (2, 0) or (0, 2), so S = n for even n; by row times 2^-3 to 2^3.

    In rows longer than 2^22 only every so many pairs are non-zero, so the sum stays exact.
    """
    shared, even, lonely = pairs(grid)
    choice = below(shared, 3)
    two = torch.where(even, choice == 1, choice == 2)
    one = choice == 0
    magnitude = torch.where(one | lonely, 1, torch.where(two, 2, 0))
    if grid.columns > EXACT_SUM:
        rare = -(-grid.columns // EXACT_SUM)
        magnitude = magnitude * ((grid.column >> 1) % rare == 0)
    return scaled((magnitude * sign(grid)).to(torch.float64), spread(grid, -3, 3))


def _grains(grid: Grid, fmt: Format) -> torch.Tensor:
    """Dense rows of as many bits as leave their sum exact, without a zero where it can be; by row times 2^-3 to 2^3.

    A program that treats rows with zeros, or with few different values, otherwise than all others is seen here.
    """
    most = max(1, min(EXACT_SUM // max(grid.columns, 1), 1 << (fmt.precision - 1)))
    magnitude = 1 + below(grid.noise, most)
    if grid.columns > EXACT_SUM:
        rare = -(-grid.columns // EXACT_SUM)
        magnitude = magnitude * (grid.column % rare == 0)
    return scaled((magnitude * sign(grid)).to(torch.float64), spread(grid, -3, 3))


def _one_hot(grid: Grid, _: Format) -> torch.Tensor:
    """One element a row is +-2^-3 to +-2^3, all others are zeros of either sign: the result there is +-n."""
    place = shift(grid.row_noise, 1) % max(grid.columns, 1)
    one = (grid.column == place).to(torch.float64)
    return scaled(one * sign(grid), spread(grid, -3, 3))


def _one_full(grid: Grid, fmt: Format) -> torch.Tensor:
    """One element a row has all the bits of its type, all others are zeros: exact in any order, at any length.

    A mean that is taken of rounded inputs shows here and nowhere else.
    """
    place = shift(grid.row_noise, 1) % max(grid.columns, 1)
    bits = fmt.precision
    magnitude = shift(grid.noise, 64 - bits) | 1 << (bits - 1)
    full = (magnitude * sign(grid)).to(torch.float64) * 2.0**-bits
    return torch.where(grid.column == place, full, 0.0)


def _one_tall(grid: Grid, fmt: Format) -> torch.Tensor:
    """One element a row is 2^22 (float16: 2^13) times as large as all others, or more, and has all the bits it can.

    It stands first, last or anywhere: whoever leaves out an end of a row, or rounds what is dense, is seen in any type
    and at any length. Sums are exact in any order. By row times 2^-3 to 2^3.
    """
    most = 14 if fmt.name == "float16" else 23
    bits = min(fmt.precision, most)
    anywhere = shift(grid.row_noise, 3) % max(grid.columns, 1)
    where = grid.row_noise & 3
    place = torch.where(where == 0, 0, torch.where(where == 1, grid.columns - 1, anywhere))
    tall = (shift(grid.noise, 64 - bits) | 1 << (bits - 1)) << (most - bits)
    magnitude = torch.where(grid.column == place, tall, 1)
    if grid.columns > EXACT_SUM:
        rare = -(-grid.columns // EXACT_SUM)
        magnitude = magnitude * ((grid.column == place) | (grid.column % rare == 0))
    value = (magnitude * sign(grid)).to(torch.float64) * 2.0 ** -(most - 2)
    return scaled(value, spread(grid, -2, 3))


def _sparse(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, but of a long row only some sixteen elements are no zeros: each of them shows in the mean."""
    there = below(hashed(grid.noise), max(grid.columns // 16, 1)) == 0
    return signed(grid, fmt) * there


def _outlier(grid: Grid, fmt: Format) -> torch.Tensor:
    """Ones, and one element a row of 2^30 (float16: 2^14): zeros elsewhere would pass an absolute tolerance."""
    place = shift(grid.row_noise, 1) % max(grid.columns, 1)
    large = 2.0**14 if fmt.name == "float16" else 2.0**30
    return torch.where(grid.column == place, large, 1.0).to(torch.float64) * sign(grid)


def _constant(grid: Grid, fmt: Format) -> torch.Tensor:
    """One value a row, repeated: the result is +-1."""
    one = Grid(grid.row, grid.column, grid.columns, grid.row_noise | 1 << 62, grid.row_noise)
    return signed(one, fmt).expand(grid.noise.shape).clone()


def _alternating(grid: Grid, fmt: Format) -> torch.Tensor:
    """One magnitude a row, its signs in turn: without them all columns are alike, with them their sum is nothing."""
    return _constant(grid, fmt).abs() * (1 - 2 * (grid.column & 1))


def _ones(grid: Grid, _: Format) -> torch.Tensor:
    """All ones: a sum in the storage type sticks at 2048 (float16) or 256 (bfloat16)."""
    return torch.ones_like(grid.noise, dtype=torch.float64)


def _zeros(grid: Grid, _: Format) -> torch.Tensor:
    """All zeros, of either sign: every result is NaN."""
    return torch.zeros_like(grid.noise, dtype=torch.float64) * sign(grid)


def _zero_rows(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row is either all zero or `signed`: zero rows are NaN and do not touch their neighbours."""
    return signed(grid, fmt) * (below(grid.row_noise, 2, 13) == 0)


def _near_max(grid: Grid, fmt: Format) -> torch.Tensor:
    """Constant magnitude at the largest finite value: [1, -1, ...], or zeros where the sum overflowed."""
    return sign(grid).to(torch.float64) * fmt.largest


#: By the names of printed cases.
PLAIN: dict[str, Recipe] = {
    "ones": _ones,
    "signed": signed,
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
    "outlier": _outlier,
    "constant": _constant,
    "alternating": _alternating,
    "zeros": _zeros,
    "zero-rows": _zero_rows,
    "near-max": _near_max,
}
