"""What an L1 normalization did instead, in words: pure functions over the wrong rows of one result.

`divisor` names what the rows were divided by, `special_row` which rule for zeros, NaN and infinities was broken. A
cause is claimed only where it explains all rows that are given; an empty string says that none does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from reference.formats import Format

from .figures import apart, factors

Numbers: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

#: Two numbers are taken for one where they differ by no more than this many roundoffs of the storage type: two
#: results of the contract for two roundings of one mean (`comparisons.TOLERANCE`), and some room.
_SAME = 16.0
#: Part of a row's elements that one divisor must explain: a tail may be wrong besides.
_MOST = 0.9
#: Fewest columns on which a factor near 1 tells its cause: of 2 columns, twice, n + 1 and a padded length are all one.
_TELLING_COLUMNS = 8
#: Padded lengths are multiples of this: the shortest vector or block that kernels pad to, in elements.
_PADDING = 8


@dataclass(frozen=True)
class Rows:
    """The wrong rows of a result, and what surrounds them.

    Attributes:
        x, y: input and result, [rows, columns].
        numbers: the rows' numbers in the matrix.
        means: the means of all rows of the matrix.
        wrong: for all rows of the matrix whether they are wrong.
        form: the storage type.
    """

    x: Numbers
    y: Numbers
    numbers: npt.NDArray[np.intp]
    means: Numbers
    wrong: Mask
    form: Format

    @cached_property
    def divisors(self) -> Numbers:
        """What each row was divided by, as most of its normal results tell; NaN where there is none."""
        smallest = self.form.quantum / self.form.roundoff
        ratio = np.where((self.x != 0) & np.isfinite(self.y) & (np.abs(self.y) >= smallest), self.x / self.y, np.nan)
        told = ~np.isnan(ratio)
        return np.array([np.median(row[some]) if some.any() else np.nan for row, some in zip(ratio, told, strict=True)])

    @cached_property
    def factor(self) -> Numbers:
        """What each row was divided by, in units of its mean."""
        return self.divisors / self.means[self.numbers]

    def same(self, left: Numbers | float, right: Numbers | float) -> bool:
        """Whether all of ``left`` are ``right``, as far as the storage type can tell."""
        tolerance = _SAME * self.form.roundoff
        return bool(np.all(np.abs(np.asarray(left) - right) <= tolerance * np.abs(right)))


@np.errstate(all="ignore")
def divisor(rows: Rows) -> str:
    """What the rows were divided by instead of their means."""
    if _reciprocal_overflows(rows):
        return "infinities stand there: the reciprocal of the mean overflows, the quotient does not"
    if _subnormals_are_zeros(rows):
        return "subnormal inputs are taken for zeros"
    if len(rows.factor) == 0 or not np.isfinite(rows.factor).all() or not (rows.factor != 0).all():
        return ""
    if rows.same(rows.factor, 1.0) and not _exactly_explained(rows):
        return ""
    if not _explained(rows):
        return ""
    low, high = float(rows.factor.min()), float(rows.factor.max())
    if rows.same(rows.factor, -1.0):
        return "every value has the wrong sign"
    middle = float(np.median(rows.factor))
    if low > 0 and middle != 1 and high - low <= min(2 * _SAME * rows.form.roundoff, abs(high - 1) / 4) * high:
        return one_factor(middle, rows.x.shape[1], rows.form.roundoff)
    if rows.same(rows.factor, 1.0):  # any cause whose numbers are near the means would do
        return "each row is divided by its mean but for a few roundoffs, where every bit of it is known"
    for words, numbers in _alternatives(rows):
        if rows.same(rows.divisors, numbers):
            return words
    cause = _prefix(rows) or _constant(rows) or _epsilon(rows)
    if cause:
        return cause
    return f"each row is divided by one number, but not by its mean: by {factors(low, high)} times the mean"


def one_factor(factor: float, columns: int, roundoff: float) -> str:
    """The words for rows that were all divided by ``factor`` times their mean."""
    size, ratio = ("small", factor) if factor > 1 else ("large", 1 / factor)
    precise = 2 * _SAME * roundoff
    exactly = f"every value is too {size} by exactly the factor"
    if columns > 1 and abs(factor / columns - 1) < precise:
        return f"{exactly} {columns} = columns: the sum was used where the mean belongs"
    if columns >= _TELLING_COLUMNS and precise < 0.1 / columns:
        for delta in (1, -1):
            if abs(factor * (columns + delta) / columns - 1) < 0.1 / columns:
                fraction = f"{max(columns, columns + delta)}/{min(columns, columns + delta)}"
                return f"{exactly} {fraction}: the sum was divided by columns {'+' if delta > 0 else '-'} 1"
        padded = columns / factor
        if abs(padded - round(padded)) < 0.05 and round(padded) not in (0, columns) and round(padded) % _PADDING == 0:
            return f"{exactly} {round(padded)}/{columns}: the sum was divided by {round(padded)}, a padded length"
    if round(ratio) > 1 and abs(ratio / round(ratio) - 1) < precise:
        return f"{exactly} {round(ratio)}"
    if ratio - 1 < 1e-3:
        return f"every value is too {size} by the factor 1 + {ratio - 1:.3g}"
    return f"every value is too {size} by the factor {ratio:.6g}"


@np.errstate(all="ignore")
def other_dimension(x: torch.Tensor, y: torch.Tensor) -> str:
    """Whether the mean was taken along another dimension than 1; both tensors as the operator got them."""
    given, got = x.double(), y.double()
    same = []
    for dim in range(x.dim()):
        mean = given.abs().mean(dim, keepdim=True)
        near = torch.allclose(got * mean, given, rtol=_SAME * torch.finfo(x.dtype).eps, atol=0)
        same += [dim] if near and bool((mean > 0).any()) else []
    if not same or 1 in same:  # where all means are alike, or some bits are off, no dimension is the cause
        return ""
    return f"the mean is taken along dimension {same[0]}, not along dimension 1"


@np.errstate(all="ignore")
def special_row(x: Numbers, got: Numbers, expected: Numbers, bad: Mask) -> str:
    """Which rule for special values one row breaks, by its first wrong element."""
    places = np.flatnonzero(bad)
    if len(places) == 0:
        return ""
    first = int(places[0])
    if np.isnan(x).any():
        row = "a row with NaN"
    elif np.isinf(x).any():
        row = "an infinity" if np.isinf(x[first]) else "a finite element of a row with an infinity"
    elif not (x != 0).any():
        row = "a row of zeros"
    else:
        row = "an element that is zero" if x[first] == 0 else "an element"
    left, right = map(_named, apart(float(got[first]), float(expected[first]), 6))
    return f"{row} gives {left}, expected {right}"


def _named(number: str) -> str:
    return number.replace("nan", "NaN").replace("inf", "infinity")


def _reciprocal_overflows(rows: Rows) -> bool:
    """Whether all that is not zero became infinite, in rows whose mean has no finite reciprocal."""
    nonzero = rows.x != 0
    return bool(
        np.isinf(rows.y[nonzero]).all() and nonzero.any() and (1 / rows.means[rows.numbers] > rows.form.largest).all()
    )


def _subnormals_are_zeros(rows: Rows) -> bool:
    """Whether rows that hold nothing but subnormal numbers became what rows of zeros become, and none such is right."""
    smallest = rows.form.quantum / rows.form.roundoff
    right = ~rows.wrong & (rows.means > 0) & (rows.means < smallest)
    return bool((np.abs(rows.x) < smallest).all() and np.isnan(rows.y).all() and not right.any())


def _explained(rows: Rows) -> bool:
    """Whether every row is, up to a tail, its input divided by its divisor."""
    return _agreeing(rows, _SAME * rows.form.roundoff) >= _MOST


def _exactly_explained(rows: Rows) -> bool:
    """Whether no element of any row disagrees with the row's divisor: a factor near 1 is then the whole fault."""
    return _agreeing(rows, 4 * rows.form.roundoff) == 1.0


def _agreeing(rows: Rows, tolerance: float) -> float:
    """The smallest part of any row that agrees with its divisor."""
    product = rows.y * rows.divisors[:, None]
    agrees = np.abs(product - rows.x) <= tolerance * np.abs(rows.x) + np.abs(rows.divisors[:, None]) * rows.form.quantum
    return float(agrees.mean(axis=1).min())


def _alternatives(rows: Rows) -> Iterator[tuple[str, Numbers]]:
    """Numbers that are taken for the mean, with the words for them."""
    magnitude, count = np.abs(rows.x), len(rows.means)
    yield "the absolute value is missing: each row is divided by mean(x)", rows.x.mean(1)
    yield "the absolute value is taken too late: each row is divided by |mean(x)|", np.abs(rows.x.mean(1))
    yield "each row is divided by its largest magnitude, not by its mean", magnitude.max(1)
    yield "each row is divided by its Euclidean norm, not by its mean", np.sqrt((rows.x**2).sum(1))
    yield "each row is divided by its root mean square, not by its mean of magnitudes", np.sqrt((rows.x**2).mean(1))
    if count > 1:
        whole = np.full(len(rows.numbers), rows.means.mean())
        yield "one mean, that of the whole matrix, is used for every row", whole
        yield "each row is divided by the mean of the row before it", rows.means[(rows.numbers - 1) % count]
        yield "each row is divided by the mean of the row behind it", rows.means[(rows.numbers + 1) % count]
        yield "every row is divided by the mean of row 0", np.full(len(rows.numbers), rows.means[0])


def _prefix(rows: Rows) -> str:
    """Whether the sum stops at the same column in every row."""
    columns = rows.x.shape[1]
    if _SAME * rows.form.roundoff > 0.2 / columns or len(rows.numbers) < 2:
        return ""
    parts = np.cumsum(np.abs(rows.x), axis=1)
    for wanted, by in ((rows.divisors * columns, "columns"), (None, "their number")):
        if wanted is not None:
            distance = np.abs(parts / wanted[:, None] - 1).max(0)
        else:
            distance = np.abs(parts / np.arange(1, columns + 1) / rows.divisors[:, None] - 1).max(0)
        end = int(np.argmin(distance)) + 1
        if distance[end - 1] <= _SAME * rows.form.roundoff and end < columns:
            return f"only the first {end} of {columns} columns are in the sum, which is divided by {by}"
    return ""


def _constant(rows: Rows) -> str:
    """Whether all rows were divided by one constant: no mean at all, or a mean that was clamped."""
    constant = float(np.median(rows.divisors))
    if len(rows.numbers) < 2 or not rows.same(rows.divisors, constant):
        return ""
    right = rows.means[~rows.wrong]
    if constant > 0 and len(right) and (rows.means[rows.wrong] < constant).all() and (right >= constant * 0.999).all():
        return f"rows of smaller mean are divided by {constant:.3g}: an epsilon was added, or the mean clamped"
    if constant > 0 and (rows.means[rows.numbers] < constant / 1000).all():
        return f"every value is {1 / constant:.4g} times the input, as if {constant:.3g} had been added to tiny means"
    return f"every value is {1 / constant:.6g} times the input: no mean of a row is in it"


def _epsilon(rows: Rows) -> str:
    """Whether the divisors are the means plus one constant."""
    added = (rows.factor - 1) * rows.means[rows.numbers]
    told = np.abs(rows.factor - 1) > 4 * _SAME * rows.form.roundoff
    if not told.any():
        return ""
    middle = float(np.median(added[told]))
    if middle > 0 and bool(np.all(np.abs(added[told] / middle - 1) < 0.3)):
        return f"each row is divided by its mean plus about {middle:.3g}: an epsilon was added"
    return ""
