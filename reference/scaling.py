"""Question 1 of the contract, streamed: which numbers r = 1/mean could have scaled a whole row.

For an element, |y - x r| <= a |x r| + q (a the tolerance, q the quantum of the storage type) is the same as

    r (1 + a) >= (|y| - q) / |x|    and    r (1 - a) <= (|y| + q) / |x|,

so a row needs two numbers only: the largest left side, `low`, and the smallest right side, `high`. Some r serves the
whole row exactly when low / (1 + a) <= high / (1 - a), and the smallest such a is (low - high) / (low + high). An
infinite y comes from |x r| (1 + a) reaching the overflow threshold T and bounds r from below only, by T / |x|.

The 16- and 32-bit types are computed in plain float64, whose 53 bits and range leave room for both. float64 itself is
computed relative to one r0 a row: with t = (|y| - |x| r0) / (|x| r0) from an exact product, low = r0 (1 + max(t - q'))
and high = r0 (1 + min(t + q')), q' = q / (|x| r0); t keeps its digits however near to zero it is.

What cannot be told from two extremes is tracked beside them: signs, positions of NaN and infinity, the two patterns of
a whole row (mean 0, mean infinite), whether the sum of the row is exact in any order, and bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reference.formats import Format
from reference.sums import Kind, Means
from reference.twofold import F64, Bools, Index, Ints, round_to, split, two_product

# A row that fails the exact-sum test does so in its first columns as a rule: look there before looking everywhere.
_FIRST_LOOK = 64

# The row's own ratio y/x serves as r0 only if it is off 1/m by more than this; nearer, t has digits to spare.
_FAR = 2.0**-10


@dataclass(frozen=True, slots=True)
class Scaling:
    """What question 1 found in each row.

    Attributes:
        low: lower bound of r in the form r >= r0 (1 + low) / (1 + a).
        high: upper bound of r in the form r <= r0 (1 + high) / (1 - a).
        rho: r0 * m - 1, m being the exact mean.
        low_column: column that gives `low`.
        high_column: column that gives `high`.
        pattern_column: a column with a wrong sign, or NaN, zero or infinity out of place; -1 if there is none.
        mean_zero: the row is what a mean of 0 gives: infinities with the sign of x, NaN where x is zero.
        mean_infinite: the row is what an infinite mean gives: zeros with the sign of x.
        exact_sum: every partial sum of |x| is a number of the accumulator's format, in any order.
        powers_of_two: n, S and hence m are powers of two, and m is a number of all formats that a mean may live in.
        bits_column: in rows with `exact_sum` and `powers_of_two`, a column that differs from the exact quotient; or -1.
    """

    low: F64
    high: F64
    rho: F64
    low_column: Index
    high_column: Index
    pattern_column: Index
    mean_zero: Bools
    mean_infinite: Bools
    exact_sum: Bools
    powers_of_two: Bools
    bits_column: Index


def narrow_bounds(x: F64, y: F64, form: Format) -> tuple[F64, F64]:
    """Return for each element the bounds (|y| - q) / |x| and (|y| + q) / |x| on r, in float64.

    Zero elements with a zero result bound nothing (-inf, inf); with any other result the lower bound is inf or NaN, and
    it is NaN where y is NaN. Not for float64: the bounds are good to 2^-51 only.
    """
    size = np.abs(x)
    high = np.abs(y)
    low = np.minimum(high, form.overflow_significand * 2.0**form.overflow_exponent)
    low -= form.quantum
    low /= size
    high += form.quantum
    high /= size
    return low, high


def wide_bounds(x: F64, y: F64, form: Format, mantissa: F64, exponent: Ints) -> tuple[F64, F64]:
    """Return for each element the bounds t - q' and t + q' relative to r0, correct to about 2^-100 + 2^-52 |t|.

    Args:
        x: inputs, (rows, chunk).
        y: results, same shape.
        form: storage type of both.
        mantissa: r0 = mantissa * 2^exponent of each row, in [0.5, 4).
        exponent: see `mantissa`.

    Returns:
        Two arrays as from `narrow_bounds`, but relative to r0: bound = r0 (1 + value).
    """
    x_part, x_power = np.frexp(x)
    y_part, y_power = np.frexp(y)
    np.abs(x_part, out=x_part)
    np.abs(y_part, out=y_part)
    infinite = np.isinf(y_part)
    some_infinite = infinite.any()
    if some_infinite:
        y_part[infinite] = form.overflow_significand
        y_power[infinite] = form.overflow_exponent
    zero = x_part == 0.0
    some_zero = zero.any()
    if some_zero:
        wrong = zero & (y_part != 0.0)
        x_part[zero] = 1.0

    factor = mantissa[:, None]
    product, error = two_product(x_part, factor, split(factor))
    x_power += exponent[:, None]
    # Beyond 2^1000 how large no longer matters, and below 2^-1100 the result is zero anyhow.
    low = np.ldexp(y_part, np.clip(y_power - x_power, -1100, 1000))
    low -= product
    low -= error
    low /= product
    high = low
    # Where q is below 2^-110 of the quotient it is left out: t itself is no more accurate.
    if x_power.min() < form.quantum_exponent + 112:
        quantum = np.ldexp(1.0, np.clip(form.quantum_exponent - x_power, -1100, 900)) / product
        high = low + quantum
        # A quotient below 2^-100 q gives 0 or q; anything larger is out of bounds by far, and t alone says so.
        tiny = quantum > 2.0**100
        low = np.where(tiny, np.where(np.abs(y) <= form.quantum, -1.0, low), low - quantum)
    elif some_zero or some_infinite:
        high = low.copy()
    if some_zero:
        low[zero] = -np.inf
        high[zero] = np.inf
        low[wrong] = np.nan
    if some_infinite:
        high[infinite] = np.inf
    return low, high


class RowScaling:
    """Accumulates the bounds on r of a fixed set of rows, chunk by chunk of columns in ascending order.

    Working memory is about eight arrays of the chunk's size (fifteen for float64).
    """

    def __init__(self, means: Means, storage: Format, accumulator: Format, overflow_from: float) -> None:
        """Prepare for rows whose sums are known.

        Args:
            means: sums and means of the same rows.
            storage: format of x and y.
            accumulator: format that sums live in.
            overflow_from: sums from here on, in units of 2^accumulator.overflow_exponent, may have overflowed.
        """
        rows = means.kind.size
        self._means = means
        self._form = storage
        self._wide = storage.precision == 53
        self._row = np.arange(rows)
        self._seen = 0
        self._low = np.full(rows, -np.inf)
        self._high = np.full(rows, np.inf)
        self._low_column = np.zeros(rows, dtype=np.intp)
        self._high_column = np.zeros(rows, dtype=np.intp)
        self._pattern_column = np.full(rows, -1, dtype=np.intp)
        self._bits_column = np.full(rows, -1, dtype=np.intp)

        self._finite = finite = means.finite()
        self._special = np.flatnonzero(~finite)
        hi, lo, exponent = means.total
        mean_hi, _, mean_exponent = means.mean
        # A mean of at most one quantum of a type it may live in can have become zero on the way.
        largest_quantum = max(storage.quantum_exponent, accumulator.quantum_exponent)
        self._mean_zero = finite & (means.mean_in_units_of(largest_quantum) <= 1.0)
        self._mean_infinite = finite & (np.ldexp(hi, exponent - accumulator.overflow_exponent) >= overflow_from)
        # Partial sums are exact if all |x| are multiples of one power of two g with S / g <= 2^precision. The smallest
        # power of two that meets the inequality will do: who is a multiple of a larger one is a multiple of it.
        power_of_two = (hi == 0.5) & (lo == 0.0)
        grid = exponent - accumulator.precision - power_of_two
        self._grid = np.ldexp(1.0, np.maximum(grid, storage.quantum_exponent))
        self._exact_sum = finite & (exponent <= accumulator.overflow_exponent)
        self._powers_of_two = (
            power_of_two & (mean_hi == 0.5) & (mean_exponent - 1 >= largest_quantum) & (means.columns.bit_count() == 1)
        )
        # r0 = 1/m until the first chunk says otherwise.
        self._r_part = 1.0 / mean_hi
        self._r_power = -mean_exponent
        self._r_open = finite.copy() if self._wide else np.zeros(rows, dtype=np.bool_)

    @np.errstate(all="ignore")
    def add(self, x: F64, y: F64) -> None:
        """Add the next columns.

        Args:
            x: inputs (rows, chunk) as float64, values of the storage type widened exactly.
            y: results, same shape and kind.
        """
        width = x.shape[1]
        if width == 0:
            return
        if self._wide:
            if self._r_open.any():
                self._choose_r0(x, y)
            low, high = wide_bounds(x, y, self._form, self._r_part, self._r_power)
        else:
            low, high = narrow_bounds(x, y, self._form)
        column = low.argmax(axis=1)
        value = low[self._row, column]
        # argmax and argmin find a NaN first, and nothing may replace it.
        better = (value > self._low) | np.isnan(value)
        self._low = np.where(better, value, self._low)
        self._low_column = np.where(better, column + self._seen, self._low_column)
        column = high.argmin(axis=1)
        value = high[self._row, column]
        better = (value < self._high) | np.isnan(value)
        self._high = np.where(better, value, self._high)
        self._high_column = np.where(better, column + self._seen, self._high_column)

        # The highest bit of a double is its sign: of the exclusive or, whether the signs differ.
        differ = x.view(np.int64) ^ y.view(np.int64)
        column = differ.argmin(axis=1)
        self._mark_pattern(self._row, column, (differ[self._row, column] < 0) & self._finite)
        self._check_whole_rows(x, y, differ)
        self._check_exact_sum(x)
        self._check_bits(x, y)
        self._seen += width

    def _mark_pattern(self, rows: Index, column: Index, wrong: Bools) -> None:
        mark = wrong & (self._pattern_column[rows] < 0)
        if mark.any():
            self._pattern_column[rows[mark]] = column[mark] + self._seen

    def _choose_r0(self, x: F64, y: F64) -> None:
        """Take r0 from the largest element of the row where 1/m is far from it; leave rows open that are zero so far.

        Any r0 is right; one near the candidate's own keeps t small and so precise.
        """
        rows = np.flatnonzero(self._r_open)
        column = np.abs(x[rows]).argmax(axis=1)
        x_part, x_power = np.frexp(np.abs(x[rows, column]))
        y_part, y_power = np.frexp(np.abs(y[rows, column]))
        seen = x_part > 0.0
        ratio, power = np.frexp(y_part / x_part)
        power += y_power - x_power
        departure = np.ldexp(ratio, power - self._r_power[rows]) / self._r_part[rows] - 1.0
        take = seen & np.isfinite(y_part) & (y_part > 0.0) & (np.abs(departure) > _FAR)
        self._r_part[rows[take]] = ratio[take]
        self._r_power[rows[take]] = power[take]
        self._r_open[rows[seen]] = False

    def _check_whole_rows(self, x: F64, y: F64, differ: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
        """Track the rows whose results follow from what the row is, not from a mean."""
        rows = self._special
        if rows.size:
            xs, ys = x[rows], y[rows]
            by_infinity = np.where(np.isinf(xs), np.isnan(ys), (ys == 0.0) & (differ[rows] >= 0))
            right = np.where((self._means.kind[rows] == Kind.INFINITE)[:, None], by_infinity, np.isnan(ys))
            column = right.argmin(axis=1)
            self._mark_pattern(rows, column, ~right[np.arange(rows.size), column])
        if self._mean_zero.any():
            rows = np.flatnonzero(self._mean_zero)
            xs, ys = x[rows], y[rows]
            pattern = np.where(xs == 0.0, np.isnan(ys), np.isinf(ys) & (differ[rows] >= 0))
            self._mean_zero[rows] = pattern.all(axis=1)
        if self._mean_infinite.any():
            rows = np.flatnonzero(self._mean_infinite)
            self._mean_infinite[rows] = ((y[rows] == 0.0) & (differ[rows] >= 0)).all(axis=1)

    def _check_exact_sum(self, x: F64) -> None:
        for part in (x[:, :_FIRST_LOOK], x[:, _FIRST_LOOK:]):
            if part.shape[1] == 0 or not self._exact_sum.any():
                return
            rows = np.flatnonzero(self._exact_sum)
            values = part if rows.size == self._row.size else part[rows]
            grid = self._grid[rows, None]
            steps = values / grid
            np.rint(steps, out=steps)
            steps *= grid
            self._exact_sum[rows] = (steps == values).all(axis=1)

    def _check_bits(self, x: F64, y: F64) -> None:
        if not self._powers_of_two.any():
            return
        rows = np.flatnonzero(self._powers_of_two & self._exact_sum & (self._bits_column < 0))
        if rows.size == 0:
            return
        right = y[rows] == quotient_by_power(x[rows], self._means.mean[2][rows] - 1, self._form)
        column = right.argmin(axis=1)
        wrong = ~right[np.arange(rows.size), column]
        self._bits_column[rows[wrong]] = column[wrong] + self._seen

    @np.errstate(all="ignore")
    def finish(self) -> Scaling:
        """Return the bounds over all columns; raises ValueError if those were not as many as were summed."""
        if self._seen != self._means.columns:
            raise ValueError(
                f"{self._seen} columns were added but the sums are over {self._means.columns}: add every column to both"
            )
        low, high = self._low, self._high
        mean_hi, mean_lo, mean_exponent = self._means.mean
        if self._wide:
            product, error = two_product(self._r_part, mean_hi)
            # r0 m is near 1 or plainly far from it; in both cases this loses nothing that is needed.
            scale = self._r_power + mean_exponent
            rho = (np.ldexp(product, scale) - 1.0) + np.ldexp(error + self._r_part * mean_lo, scale)
        else:
            mean = np.ldexp(mean_hi, mean_exponent)
            low, high = low * mean - 1.0, high * mean - 1.0
            rho = np.zeros_like(low)
        misplaced = self._means.finite() & ~(low < np.inf) & (self._pattern_column < 0)
        return Scaling(
            low=low,
            high=high,
            rho=rho,
            low_column=self._low_column,
            high_column=self._high_column,
            pattern_column=np.where(misplaced, self._low_column, self._pattern_column),
            mean_zero=self._mean_zero,
            mean_infinite=self._mean_infinite,
            exact_sum=self._exact_sum,
            powers_of_two=self._powers_of_two,
            bits_column=np.where(self._exact_sum, self._bits_column, -1),
        )


def quotient_by_power(x: F64, power: Ints, form: Format) -> F64:
    """Return x / 2^power of each row, rounded once to the format."""
    return round_to(form, x, np.zeros_like(x), np.broadcast_to(-power[:, None], x.shape))
