"""A look at inputs of gigabytes where they lie: which rows are certainly right, in seconds.

`reference.exact` decides; it runs on the host and takes a minute for 2^32 elements. A row is *cleared* here if it meets
a condition that is sufficient for the contract by a margin that float64 arithmetic cannot use up; what is not cleared
says nothing and is for the oracle to judge.

The condition names a mean' and asks both questions of the contract of it. |y - x / mean'| <= 2 u_out |x / mean'| for
every element (the contract: 2.02 u_out, and a quantum), signs equal, and infinity where the quotient is beyond the
type's largest number. For 16-bit types mean' is the exact mean, or that rounded to the storage type, as the contract
allows; for float32, whose mean shows in its results to a fraction of a roundoff, it is sum |x| / sum |y|, and must be
within 3 u of the exact mean (the contract: 4 u where it is sharpest). Where columns are a power of two, every bit may
be asked for: nothing is cleared there, nor of float64, nor in a row with a NaN or an infinity.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from reference.formats import accumulator, format_of

#: Of 2.02 and of 4 roundoffs: what is left is a hundred million times float64's own errors here.
_SCALING, _MEAN = 2.0, 3.0
#: Elements looked at at a time: a few float64 temporaries of 512 MiB.
_BLOCK = 1 << 26


def cleared(x: torch.Tensor, y: torch.Tensor, block: int = _BLOCK) -> torch.Tensor:
    """Whether each row is certainly right; False where that is not known.

    Args:
        x: input [rows, columns], on any device.
        y: result, of the same shape and dtype.
        block: elements looked at at a time.
    """
    rows, columns = x.shape
    dtype = str(x.dtype).removeprefix("torch.")
    if columns & (columns - 1) == 0 or x.dtype == torch.float64 or rows == 0:
        return torch.zeros(rows, dtype=torch.bool, device=x.device)
    of_x, of_y = (_sums(each, block) for each in (x, y))
    mean = of_x / columns
    if x.dtype == torch.float32:
        shown = of_x / of_y
        near = (shown - mean).abs() <= _MEAN * accumulator(dtype).roundoff * mean
        return near & _explained(x, y, shown, block)
    return _explained(x, y, mean, block) | _explained(x, y, mean.to(x.dtype).double(), block)


def _sums(values: torch.Tensor, block: int) -> torch.Tensor:
    """The sum of sizes of each row, in float64."""
    found = torch.zeros(values.shape[0], dtype=torch.float64, device=values.device)
    for rows, columns in _blocks(values, block):
        found[rows] += values[rows, columns].double().abs_().sum(1)
    return found


def _explained(x: torch.Tensor, y: torch.Tensor, mean: torch.Tensor, block: int) -> torch.Tensor:
    """Whether x / mean is every element of a row, to two roundoffs of the storage type."""
    form = format_of(str(x.dtype).removeprefix("torch."))
    allowed = _SCALING * form.roundoff
    beyond = form.largest * (1 + 4 * form.roundoff)
    found = torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
    for rows, columns in _blocks(x, block):
        got = y[rows, columns].double()
        exact = x[rows, columns].double().div_(mean[rows, None])
        alike = got.signbit() == exact.signbit()
        alike &= ((got - exact).abs_() <= exact.abs() * allowed) | ((exact.abs() > beyond) & got.isinf())
        found[rows] &= (alike & exact.isfinite()).all(1)
    return found


def _blocks(matrix: torch.Tensor, block: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most so many elements: whole rows where they fit."""
    rows, columns = matrix.shape
    width = min(columns, block)
    height = max(1, block // columns)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield slice(top, top + height), slice(left, left + width)
