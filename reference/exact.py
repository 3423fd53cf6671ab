"""The exact oracle of y = x / mean(|x|) over rows, and the contract that a result is judged by.

The contract: one mean explains the row
---------------------------------------

n columns, S = sum of |x_j| and m = S / n exactly, y_j = x_j / m exactly; u is the unit roundoff of the accumulator's
format (float64 for float64, float32 for the other three types), u_out that of the storage type, q a quantum (the
smallest subnormal number).

A program that computes x / mean(|x|) divides a whole row by one number, its mean. So a row is asked two questions:

1. Scaling. Is there one mean' such that every element satisfies |y_j - x_j / mean'| <= 2.02 u_out |x_j / mean'| + q?
   Zeros give zeros with the sign of x; where the quotient leaves the type y_j is infinite with the sign of x.
2. Mean. Is that mean' near m, |mean' - m| <= e m + one quantum of the type the mean may live in? That is the
   accumulator's format; for float16 and bfloat16 a mean rounded to the storage type is allowed too, with that type's
   roundoff and quantum, as eager PyTorch does (reported as `rounded_mean`).

   * limit, any row: e = gamma(n + 1). n - 1 additions in any order, the rounding of n and one division give this and
     no smaller bound (gamma(k) = k u / (1 - k u); Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
     lemma 3.1 and section 4.2). It says something while n u is well below 1; callers give longer rows sparse values.
   * exact-sum: where all |x_j| are multiples of a power of two g with S / g <= 2^24 (2^53 for float64) and S does not
     overflow, every partial sum is a number of the accumulator's format, so no order of summation errs; e = 4 u is left
     for n, the division, and a reciprocal or a product of which the mean is not formed.
   * bit-exact: n and S powers of two besides, and m a number of the types a mean may live in: nothing rounds but the
     quotient itself, so every bit must be the exact quotient's.
   * grade, reported only: e = gamma(ceil(n / 256) + 18), what 256 lanes and a tree reach: 256 = 2^8 lanes of
     ceil(n / 256) - 1 additions, 8 levels and what vectors, slices, n and the division add. Others are `inaccurate`.

Where the constants come from: 2.02 u_out. x / mean' rounds once, x * (1 / mean') too, since the error of the reciprocal
is the same for the row and belongs to mean'; (x / S) * n rounds twice, and 0.02 covers products of errors down to
u_out = 2^-8. The extra q covers results that are subnormal, where rounding errs by up to q / 2 instead.

A row is judged whole. The mean may have become infinite (a row of zeros with the signs of x) only where S (1 + e)
reaches the largest finite number of the accumulator's format; it may have become zero (infinities with the signs of x,
NaN for zeros) only where m is at most one quantum of a type it may live in. A mean that is not zero is at least that
quantum, or m (1 - e) where a wider type held it. A row never mixes two answers.

NaN in a row makes the row NaN; an infinity gives NaN in its own place and zeros with the sign of x elsewhere; a row of
zeros gives NaN. NaN are compared by position. No epsilon anywhere.

What this does not look at: strides, memory, devices. Nor does it use torch or believe a candidate: its inputs are
numbers. Temporaries are bounded by the block size whatever the shape, a single row of 2^30 columns included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from reference.formats import Format, accumulator, format_of
from reference.scaling import RowScaling, Scaling
from reference.sums import Kind, Means, RowSums
from reference.twofold import F64, Bools, Index

# In units of u_out: two roundings and their products, see the module's text.
TOLERANCE_ROUNDOFFS = 2.02

# In units of u: see the exact-sum tier in the module's text.
EXACT_SUM_ROUNDOFFS = 4.0

# The grade is the error of this many lanes, each a plain loop, with this many additions and roundings after the loops.
GRADE_LANES = 256
GRADE_STEPS = 18

# Elements a block: a float64 array of it is 0.5 MiB, so the arrays in use at one time stay in a 2 MiB second-level cache.
BLOCK_ELEMENTS = 1 << 16

# Elements of a failed row that the median is taken over, to say which mean most of the row agrees on.
SAMPLE_COLUMNS = 2048

Codes: TypeAlias = npt.NDArray[np.int8]

Fetch: TypeAlias = Callable[[slice, slice], tuple[F64, F64]]
"""Returns x[rows, columns] and y[rows, columns] as float64; the column slice may have a step."""


class Reason(IntEnum):
    """Why a row is accepted or not; the first that applies."""

    OK = 0
    """Accepted."""
    SPECIAL = 1
    """A sign, zero, NaN or infinity where it does not belong."""
    SCALING = 2
    """No single mean explains the row."""
    MEAN = 3
    """One mean explains the row, but it is too far from the exact one."""
    BITS = 4
    """Within bounds, but bits differ in a row where nothing rounds."""


class Tier(IntEnum):
    """Which bound on the mean a row was judged by."""

    SPECIAL = 0
    """A row of zeros, or with NaN or infinities: positions and signs only."""
    LIMIT = 1
    """e = gamma(n + 1)."""
    EXACT_SUM = 2
    """e = 4 u."""
    BIT_EXACT = 3
    """Every bit."""


class WholeRow(IntEnum):
    """Whether an accepted row shows a mean that left its type."""

    NO = 0
    """The mean is an ordinary number."""
    MEAN_ZERO = 1
    """The mean underflowed: infinities, and NaN for zeros."""
    MEAN_INFINITE = 2
    """The sum overflowed: zeros."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the contract says of each row; every attribute is an array with one entry a row.

    Attributes:
        ok: the row is accepted.
        reason: `Reason`.
        tier: `Tier`.
        whole_row: `WholeRow`; the numbers below are then 0, and `factor` is 0 or inf.
        scaling: smallest tolerance at which question 1 has an answer, in units of u_out (accepted up to 2.02; inf where a
            special value is out of place).
        factor: mean'/m, the middle of what question 1 leaves open, or, where it has no answer, the median over the row
            (negative if most signs are wrong); NaN where no element tells.
        mean_error: mean'/m - 1, of all that question 1 leaves open the value nearest to 0.
        allowed: the largest |mean_error| that question 2 accepts for this row, quantum included.
        inaccurate: accepted, but the error is beyond the grade.
        rounded_mean: accepted only because the mean may be rounded to the storage type.
        column: the element to look at: out of place, or farthest from what most of the row agrees on, or largest.
    """

    ok: Bools
    reason: Codes
    tier: Codes
    whole_row: Codes
    scaling: F64
    factor: F64
    mean_error: F64
    allowed: F64
    inaccurate: Bools
    rounded_mean: Bools
    column: Index

    @property
    def accepted(self) -> bool:
        """Whether every row is accepted; true if there is none."""
        return bool(self.ok.all())

    @property
    def mean_error_in_units(self) -> F64:
        """`mean_error` in units of what is allowed: accepted from -1 to 1, and 0 where all is allowed."""
        return np.where(self.mean_error == 0.0, 0.0, self.mean_error / np.where(self.allowed > 0.0, self.allowed, 1.0))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return one verdict over the rows of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)})

    @classmethod
    def of_empty_rows(cls, rows: int) -> Self:
        """Return the verdict on rows without elements: nothing to say against them."""
        codes, numbers, flags = np.zeros(rows, np.int8), np.zeros(rows), np.zeros(rows, np.bool_)
        return cls(
            ok=~flags,
            reason=codes,
            tier=codes,
            whole_row=codes,
            scaling=numbers,
            factor=np.full(rows, np.nan),
            mean_error=numbers,
            allowed=numbers,
            inaccurate=flags,
            rounded_mean=flags,
            column=np.full(rows, -1, np.intp),
        )


def gamma(count: int, roundoff: float) -> float:
    """Return k u / (1 - k u), the bound on the relative error of k roundings; infinite where k u reaches 1."""
    product = count * roundoff
    return product / (1.0 - product) if product < 1.0 else math.inf


def limit(columns: int, dtype: str) -> float:
    """Return e of the limit tier: the error of a mean over `columns` numbers, summed in any order."""
    return gamma(columns + 1, accumulator(dtype).roundoff)


def grade(columns: int, dtype: str) -> float:
    """Return e of the grade: the error of a mean over `columns` numbers, summed by 256 lanes and a tree."""
    return gamma(-(-columns // GRADE_LANES) + GRADE_STEPS, accumulator(dtype).roundoff)


def judge_rows(x: F64, y: F64, dtype: str, *, block_elements: int = BLOCK_ELEMENTS) -> Verdict:
    """Judge y as the result of x / mean(|x|) over axis 1.

    Args:
        x: inputs (rows, columns), values of the storage type widened exactly to float64.
        y: results, same shape and kind.
        dtype: name of the storage type, with or without "torch.".
        block_elements: elements looked at at one time, a bound on temporaries.

    Raises:
        ValueError: the shapes differ or are not 2-D, an array is not float64, or the dtype is unknown.
    """
    if x.ndim != 2 or x.shape != y.shape or x.dtype != np.float64 or y.dtype != np.float64:
        raise ValueError(
            f"x is {x.dtype} {x.shape} and y is {y.dtype} {y.shape}: pass two float64 arrays (rows, columns) of one shape"
        )
    return judge_blocks(
        lambda rows, columns: (x[rows, columns], y[rows, columns]), *x.shape, dtype, block_elements=block_elements
    )


@np.errstate(all="ignore")
def judge_blocks(
    fetch: Fetch, rows: int, columns: int, dtype: str, *, block_elements: int = BLOCK_ELEMENTS
) -> Verdict:
    """Judge a result that is read block by block.

    Rows longer than a block are fetched twice, in pieces and in ascending order; rows that fail are sampled once more.

    Args:
        fetch: gives a block of x and y, see `Fetch`; it must give the same values every time.
        rows: number of rows.
        columns: number of columns.
        dtype: name of the storage type, with or without "torch.".
        block_elements: largest number of elements that is fetched at one time.

    Raises:
        ValueError: the dtype is unknown.
    """
    storage, sums_in = format_of(dtype), accumulator(dtype)
    if rows == 0 or columns == 0:
        return Verdict.of_empty_rows(rows)
    height = max(1, min(rows, block_elements // columns))
    pieces = -(-columns // block_elements)
    width = -(-columns // pieces)
    parts = []
    for top in range(0, rows, height):
        part = slice(top, min(top + height, rows))
        means, scaling = _measure(fetch, part, columns, width, storage, sums_in)
        parts.append(_decide(fetch, part, means, scaling, storage, sums_in))
    return Verdict.joined(parts)


def _measure(
    fetch: Fetch, part: slice, columns: int, width: int, storage: Format, sums_in: Format
) -> tuple[Means, Scaling]:
    """Stream some whole rows through both passes."""
    rows = part.stop - part.start
    pieces = [slice(left, min(left + width, columns)) for left in range(0, columns, width)]
    sums = RowSums(rows)
    for piece in pieces:
        x, y = fetch(part, piece)
        sums.add(x)
    means = sums.finish()
    bound = gamma(columns + 1, sums_in.roundoff)
    scaling = RowScaling(means, storage, sums_in, (1.0 - sums_in.roundoff) / (1.0 + bound))
    for piece in pieces:
        if len(pieces) > 1:
            x, y = fetch(part, piece)
        scaling.add(x, y)
    return means, scaling.finish()


def _decide(
    fetch: Fetch, part: slice, means: Means, found: Scaling, storage: Format, sums_in: Format
) -> Verdict:
    """Answer both questions from what the passes found."""
    u, u_out = sums_in.roundoff, storage.roundoff
    finite = means.finite()
    tolerance = TOLERANCE_ROUNDOFFS * u_out
    misplaced = found.pattern_column >= 0

    need = _needed_tolerance(found)
    one_mean = need <= tolerance
    nearest, farthest = _mean_errors(found, tolerance)

    bound = np.where(found.exact_sum, EXACT_SUM_ROUNDOFFS * u, gamma(means.columns + 1, u))
    graded = np.minimum(bound, gamma(-(-means.columns // GRADE_LANES) + GRADE_STEPS, u))
    quantum = 1.0 / means.mean_in_units_of(sums_in.quantum_exponent)
    plain = _meets(nearest, farthest, bound, quantum)
    accurate = _meets(nearest, farthest, graded, quantum)
    allowed = bound + quantum
    near = plain
    if storage.precision < sums_in.precision:
        stored_quantum = 1.0 / means.mean_in_units_of(storage.quantum_exponent)
        rounded_bound = bound + u_out * (1.0 + bound)
        near = plain | _meets(nearest, farthest, rounded_bound, stored_quantum)
        accurate |= _meets(nearest, farthest, graded + u_out * (1.0 + graded), stored_quantum)
        allowed = np.where(plain, allowed, rounded_bound + stored_quantum)

    total_hi, _, total_exponent = means.total
    total = np.ldexp(total_hi, total_exponent - sums_in.overflow_exponent)
    overflowed = found.mean_infinite & (total * (1.0 + bound) >= 1.0 - u)
    whole = np.where(overflowed, np.int8(WholeRow.MEAN_INFINITE), np.int8(WholeRow.NO))
    whole = np.where(found.mean_zero, np.int8(WholeRow.MEAN_ZERO), whole)
    ordinary = finite & (whole == WholeRow.NO)

    emptied = ~near & ((found.low <= -1.0) | (found.high == np.inf))
    bits = found.powers_of_two & found.exact_sum
    reason = np.select(
        [misplaced & (whole == WholeRow.NO), ~ordinary, ~one_mean, emptied, ~near, bits & (found.bits_column >= 0)],
        [Reason.SPECIAL, Reason.OK, Reason.SCALING, Reason.SPECIAL, Reason.MEAN, Reason.BITS],
        Reason.OK,
    ).astype(np.int8)
    ok = reason == Reason.OK

    factor = _middle_factor(found)
    factor = np.where(finite, factor, np.nan)
    torn = finite & ((reason == Reason.SCALING) | ((reason == Reason.SPECIAL) & ~emptied))
    if torn.any():
        factor = np.where(torn, _sampled_factor(fetch, part, means), factor)
    factor = np.where(whole == WholeRow.MEAN_ZERO, 0.0, np.where(whole == WholeRow.MEAN_INFINITE, np.inf, factor))

    error = np.where(torn, factor - 1.0, np.clip(0.0, nearest, farthest))
    tier = np.select([~finite, bits, found.exact_sum], [Tier.SPECIAL, Tier.BIT_EXACT, Tier.EXACT_SUM], Tier.LIMIT)
    zero_mean_by_rounding = (whole == WholeRow.MEAN_ZERO) & (quantum < 1.0)
    return Verdict(
        ok=ok,
        reason=reason,
        tier=tier.astype(np.int8),
        whole_row=whole,
        scaling=np.where(ordinary, np.where(misplaced, np.inf, need / u_out), np.where(misplaced & ~ok, np.inf, 0.0)),
        factor=factor,
        mean_error=np.where(ordinary, error, 0.0),
        allowed=np.where(finite, allowed, 0.0),
        inaccurate=ok & ordinary & ~accurate,
        rounded_mean=ok & ((ordinary & ~plain) | zero_mean_by_rounding),
        column=_column_to_look_at(means, found, reason, factor),
    )


def _needed_tolerance(found: Scaling) -> F64:
    """Return the smallest a for which some r satisfies both bounds, (low - high) / (low + high) in plain numbers."""
    low = np.maximum(found.low, -1.0)
    need = (low - found.high) / (2.0 + low + found.high)
    # NaN or infinite bounds come from values out of place: no tolerance helps those.
    return np.where(low <= found.high, 0.0, np.where(np.isfinite(need), np.maximum(need, 0.0), np.inf))


def _mean_errors(found: Scaling, tolerance: float) -> tuple[F64, F64]:
    """Return the least and the largest mean'/m - 1 that question 1 leaves open.

    With r = r0 (1 + s) and r0 m = 1 + rho, mean'/m = 1 / ((1 + s)(1 + rho)); written so that nothing cancels near 1.
    """
    low = found.low + found.rho + found.low * found.rho
    high = found.high + found.rho + found.high * found.rho
    least = np.where(high > -1.0, (-tolerance - high) / (1.0 + high), np.inf)
    least = np.where(found.high == np.inf, -1.0, least)
    largest = np.where(low > -1.0, (tolerance - low) / (1.0 + low), np.inf)
    return least, largest


def _meets(least: F64, largest: F64, bound: F64, quantum: F64) -> Bools:
    """Return whether some error between `least` and `largest` is allowed by e = bound and a quantum relative to m.

    From below a mean other than zero is at least one quantum, or m (1 - e) where a wider type held it.
    """
    lowest = np.maximum(-bound - quantum, np.minimum(quantum - 1.0, -bound))
    return (least <= bound + quantum) & (largest >= lowest)


def _middle_factor(found: Scaling) -> F64:
    """Return mean'/m for r in the middle of its bounds."""
    low = np.maximum(found.low, -1.0)
    twice = np.where(found.high == np.inf, 2.0 + 2.0 * low, 2.0 + low + found.high)
    return 2.0 / (twice * (1.0 + found.rho))


def _sampled_factor(fetch: Fetch, part: slice, means: Means) -> F64:
    """Return for each row the median of x_j / (y_j m) over a sample of its finite, nonzero elements; NaN without any."""
    # An odd step meets every lane of a warp and every slot of a vector, so the median speaks for all of them.
    step = -(-means.columns // SAMPLE_COLUMNS) | 1
    x, y = fetch(part, slice(0, means.columns, step))
    return median_factor(x, y, means)


def median_factor(x: F64, y: F64, means: Means) -> F64:
    """Return for each row the median of x_j / (y_j m) over its finite, nonzero elements; NaN without any."""
    x_part, x_power = np.frexp(x)
    y_part, y_power = np.frexp(y)
    hi, _, exponent = means.mean
    factors = np.ldexp(x_part / (y_part * hi[:, None]), x_power - y_power - exponent[:, None])
    usable = np.isfinite(x) & np.isfinite(y) & (x != 0.0) & (y != 0.0)
    factors = np.sort(np.where(usable, factors, np.nan), axis=1)
    count = usable.sum(axis=1)
    median = factors[np.arange(count.size), np.maximum(count - 1, 0) // 2]
    return np.where(count > 0, median, np.nan)


def _column_to_look_at(means: Means, found: Scaling, reason: Codes, factor: F64) -> Index:
    agreed = 1.0 / (factor * (1.0 + found.rho))
    above = (1.0 + found.low) / agreed
    below = agreed / (1.0 + found.high)
    extreme = np.where(below > above, found.high_column, found.low_column)
    misplaced = np.where(found.pattern_column >= 0, found.pattern_column, means.largest_column)
    return np.select(
        [reason == Reason.SPECIAL, reason == Reason.MEAN, reason == Reason.BITS],
        [misplaced, means.largest_column, found.bits_column],
        extreme,
    )
