"""Value recipes that look like what a network has at hand: masks, padding, images, activations, probabilities.

A program may know them when it sees them, and take a shortcut that is wrong.
"""

from __future__ import annotations

import torch

from reference.formats import Format

from .hashing import Grid, Recipe, below, pairs, scaled, sign, signed, spread


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
}
