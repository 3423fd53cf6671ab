"""Value recipes that look like what a network has at hand: masks, padding, images, activations, probabilities.

A program may know them when it sees them, and take a shortcut that is wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from reference.formats import Format

from .hashing import (
    MIX1,
    Grid,
    Recipe,
    below,
    column_noise,
    fraction,
    hashed,
    multiples,
    pairs,
    scaled,
    shift,
    sign,
    signed,
    spread,
)


def _part(grid: Grid, fmt: Format, first: torch.Tensor | int, length: torch.Tensor) -> torch.Tensor:
    """`signed` from a column on, for as many as there are of it, and zeros elsewhere."""
    return torch.where((grid.column >= first) & (grid.column < first + length), signed(grid, fmt), 0.0)


def _padded(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed` up to a column between half of the row and its end, another in each row, and zeros behind: padding."""
    return _part(grid, fmt, 0, grid.columns - below(grid.row_noise, grid.columns // 2 + 1))


def _padded_before(grid: Grid, fmt: Format) -> torch.Tensor:
    """The same with the zeros in front, in every third row or so half of them in front and half behind."""
    zeros = below(grid.row_noise, grid.columns // 2 + 1)
    first = torch.where(below(grid.row_noise, 3, 17) == 0, zeros // 2, zeros)
    return _part(grid, fmt, first, grid.columns - zeros)


def _half(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, but what is negative is zero: what an activation leaves."""
    return signed(grid, fmt).clamp_min(0.0)


def _sorted(grid: Grid, fmt: Format) -> torch.Tensor:
    """Rows that rise from -1 to 1 in steps that the type holds exactly, or fall; by row times 2^-3 to 2^3."""
    steps = 2 ** min(fmt.precision, 24)
    place = ((2 * grid.column + 1) * (steps // 2)) // max(grid.columns, 1) - steps // 2
    rises = 1 - 2 * (grid.row_noise & 1)
    return scaled((place * rises).to(torch.float64) * (2.0 / steps), spread(grid, -3, 3))


def _masked(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and beyond a place that moves on with every row all is minus infinity: a causal mask."""
    last = grid.row % max(grid.columns, 1)
    return torch.where(grid.column <= last, signed(grid, fmt), -torch.inf)


def _nearly_constant(grid: Grid, fmt: Format) -> torch.Tensor:
    """A base with little upon it, of any sign: 1024 (bfloat16: 128) to 4 more, more often less; times 2^-3 to 2^3."""
    base = min(fmt.precision, 11) - 1
    magnitude = (1 << base) + below(grid.noise, 5) * below(grid.noise, 2, 7)
    return scaled((magnitude * sign(grid)).to(torch.float64), spread(grid, -3 - base, 3 - base))


def _levels(grid: Grid, fmt: Format) -> torch.Tensor:
    """Multiples of 1/255 from 0 to 1, as images have them, rounded to the type."""
    level = below(grid.noise, 256)
    leading = torch.stack([level < 1 << bit for bit in range(1, 8)]).sum(0)  # zeros in front, of eight bits
    bits = ((level << (leading + fmt.precision)) + 127) // 255
    return scaled(bits.to(torch.float64), -(leading + fmt.precision))


def _shares(grid: Grid, fmt: Format) -> torch.Tensor:
    """Positive rows whose sum is 1 to a part in 2^9 (bfloat16: 2^6), as that of probabilities; by pairs of columns."""
    count = max(grid.columns, 1)
    scale = (count - 1).bit_length() + min(fmt.precision, 11) - 3
    if fmt.name == "float16":
        scale = min(scale, 24)
    share = max(1, ((1 << scale) + count // 2) // count)
    shared, even, lonely = pairs(grid)
    uneven = below(shared, share)
    magnitude = share + torch.where(lonely, 0, torch.where(even, uneven, -uneven))
    return scaled(magnitude.to(torch.float64), torch.full_like(magnitude, -scale))


def _gaussian(grid: Grid, fmt: Format) -> torch.Tensor:
    """Twelve uniform numbers added up, less six: mean 0 and variance 1, every row alike, as ``torch.randn`` gives."""
    second = hashed(grid.noise)
    tenths = torch.stack([shift(word, 10 * place) & 1023 for word in (grid.noise, second) for place in range(6)])
    total = tenths.sum(0) - 6 * 1023
    finer = fmt.precision - 13  # bits: 13 hold a total, and what a type has beyond is filled
    if finer < 0:
        total = torch.where(total < 0, -(-total >> -finer), total >> -finer)
    else:
        bits = shift(hashed(second), 64 - finer) if finer else torch.zeros_like(total)
        total = torch.where(total < 0, -((-total << finer) | bits), total << finer | bits)
    return scaled(total.to(torch.float64), torch.full_like(total, -10 - finer))


def _activations(grid: Grid, fmt: Format) -> torch.Tensor:
    """What GELU or SiLU leaves: `_gaussian` where it is positive, and otherwise nothing below -0.172."""
    drawn = _gaussian(grid, fmt)
    magnitude = (shift(hashed(grid.noise), 64 - fmt.precision) * 11) >> 6
    return torch.where(drawn > 0, drawn, magnitude.to(torch.float64) * -(2.0**-fmt.precision))


def _mostly_positive(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in [0, 1), but of forty elements one is negative."""
    return fraction(grid, fmt).abs() * torch.where(below(hashed(grid.noise), 40) == 0, -1, 1)


def _negative(grid: Grid, fmt: Format) -> torch.Tensor:
    """Uniform in [-16, 0), every element: logarithms of probabilities."""
    magnitude = shift(grid.noise, 64 - fmt.precision) + 1
    return magnitude.to(torch.float64) * -(2.0 ** (4 - fmt.precision))


def _nearly_alike(grid: Grid, fmt: Format) -> torch.Tensor:
    """`_nearly_constant`, all of it positive: a temperature in kelvin."""
    return _nearly_constant(grid, fmt).abs()


def _unit_norm(grid: Grid, fmt: Format) -> torch.Tensor:
    """Rows whose squares add up to 1, as embeddings have them: pairs of columns, each at an angle, rounded."""
    shared, even, lonely = pairs(grid)
    slope = shift(shared, 12).to(torch.float64) * 2.0**-52
    square = slope * slope
    cosine, sine = (1 - square) / (1 + square), 2 * slope / (1 + square)
    size = torch.where(lonely, 1.0, torch.where(even, cosine, sine)) / math.sqrt(max((grid.columns + 1) // 2, 1))
    finest = fmt.precision + (((grid.columns + 1) // 2).bit_length() - 1) // 2
    return torch.round(size * 2.0**finest) * 2.0**-finest * sign(grid)


def _drifting(grid: Grid, fmt: Format) -> torch.Tensor:
    """Every row is the one before, to a part in 2^10 (bfloat16: 2^7): frames of a film, steps of a solver."""
    most = max(1 << (fmt.precision - 1) >> 10, 1)
    first = column_noise(grid)
    base = (1 << (fmt.precision - 1)) + below(first, (1 << (fmt.precision - 1)) - 2 * most)
    magnitude = base + below(grid.row_noise, most) + below(grid.noise, 2)
    return magnitude.to(torch.float64) * 2.0 ** (1 - fmt.precision) * (1 - 2 * (first & 1))


def _falling(grid: Grid, fmt: Format) -> torch.Tensor:
    """Positive rows that fall, strictly where the type has so many numbers, to a thousandth: singular values, decays.

    In ten octaves, each a straight line; by row times 2^-3 to 2^3.
    """
    bits = min(fmt.precision - 1, 20)
    place = ((grid.column * (10 << bits)) // max(grid.columns, 1)).expand(grid.noise.shape)
    magnitude = (2 << bits) - (place & ((1 << bits) - 1))
    return scaled(magnitude.to(torch.float64), spread(grid, -3, 3) - (place >> bits) - bits)


def _coarse(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed` with the bits of a narrower type: what was bfloat16 (float64: float32; else: float8) once."""
    bits = {24: 8, 53: 24}.get(fmt.precision, 4)
    return scaled(multiples(grid, bits), spread(grid, -3, 3))


def _triangle(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and zeros behind the diagonal: a factor, or weights behind a causal mask."""
    return torch.where(grid.column <= grid.row % max(grid.columns, 1), signed(grid, fmt), 0.0)


def _dead_columns(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and one column of eight is zero in every row: features that never fire."""
    return torch.where(below(column_noise(grid), 8) == 0, 0.0, signed(grid, fmt))


def _bias(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed` before a last column of ones: a homogeneous coordinate, or what a bias is multiplied by."""
    return torch.where(grid.column == grid.columns - 1, 1.0, signed(grid, fmt))


def _pixels(grid: Grid, _: Format) -> torch.Tensor:
    """Integers from 0 to 255, every row alike."""
    return below(grid.noise, 256).to(torch.float64)


def _samples(grid: Grid, fmt: Format) -> torch.Tensor:
    """Integers of 16 bits, as of sound; of a type that keeps fewer bits, its multiples of 2^4 (bfloat16: 2^7)."""
    bits = min(fmt.precision, 15)
    return (shift(grid.noise, 64 - bits) * sign(grid)).to(torch.float64) * 2.0 ** (15 - bits)


def _alike_at_the_ends(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed` between a quarter in front and one behind that are the same in every row: prompts, frames, records."""
    everywhere = grid.column * 4 // max(grid.columns, 1) % 3 == 0
    noise = torch.where(everywhere, hashed((grid.column + 1) * MIX1), grid.noise)
    return multiples(replace(grid, noise=noise), fmt.precision)


def _pruned(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and two of every four columns are zero, others in each row: weights for sparse multiplication."""
    group = hashed(grid.row_noise + (grid.column >> 2) * MIX1)
    first, second = below(group, 4), below(group, 3, 17)
    second = second + (second >= first)
    place = grid.column & 3
    return torch.where((place == first) | (place == second), 0.0, signed(grid, fmt))


def _real_parts(grid: Grid, fmt: Format) -> torch.Tensor:
    """`signed`, and every second column is zero: real numbers as complex ones, or a map that was made larger."""
    return torch.where(grid.column % 2 == 1, 0.0, signed(grid, fmt))


def _positions(grid: Grid, fmt: Format) -> torch.Tensor:
    """0, 1, 2 and so on, as far as the type counts, and again; by row times 1 to 8."""
    count = grid.column % (1 << min(fmt.precision, 15))
    return scaled(count.to(torch.float64), spread(grid, 0, 3))


def _diagonal(grid: Grid, _: Format) -> torch.Tensor:
    """Ones where the column has the row's number, and zeros elsewhere: the identity."""
    return (grid.column == grid.row % max(grid.columns, 1)).to(torch.float64)


def _bits(grid: Grid, _: Format) -> torch.Tensor:
    """Zeros and ones, as many of both: masks, spikes, what is kept where the rest is dropped."""
    return below(grid.noise, 2).to(torch.float64)


def _timestamps(grid: Grid, fmt: Format) -> torch.Tensor:
    """From 3 * 2^29 to a twelfth more, as seconds since 1970 are; of float16 2^16 times as little."""
    magnitude = (3 << (fmt.precision - 2)) + shift(grid.noise, 68 - fmt.precision)
    return magnitude.to(torch.float64) * 2.0 ** ((15 if fmt.name == "float16" else 31) - fmt.precision)


#: By the names of printed cases.
LOOKALIKES: dict[str, Recipe] = {
    "padded": _padded,
    "padded-before": _padded_before,
    "half": _half,
    "sorted": _sorted,
    "masked": _masked,
    "nearly-constant": _nearly_constant,
    "levels": _levels,
    "shares": _shares,
    "gaussian": _gaussian,
    "activations": _activations,
    "mostly-positive": _mostly_positive,
    "negative": _negative,
    "nearly-alike": _nearly_alike,
    "unit-norm": _unit_norm,
    "drifting": _drifting,
    "falling": _falling,
    "coarse": _coarse,
    "triangle": _triangle,
    "dead-columns": _dead_columns,
    "bias": _bias,
    "pixels": _pixels,
    "samples": _samples,
    "alike-at-the-ends": _alike_at_the_ends,
    "pruned": _pruned,
    "real-parts": _real_parts,
    "positions": _positions,
    "diagonal": _diagonal,
    "bits": _bits,
    "timestamps": _timestamps,
}
