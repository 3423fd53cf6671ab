"""Question 2 of the contract: is the one mean that explains a row near the exact mean? And the verdict on the row.

The bounds and where they come from are explained in `reference.exact`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from reference.formats import Format, accumulator
from reference.scaling import Scaling
from reference.sums import Means
from reference.twofold import F64, Bools, Index
from reference.verdict import Codes, Reason, Tier, Verdict, WholeRow

Sample: TypeAlias = Callable[[], tuple[F64, F64]]
"""Returns x and y of the rows in question over a sample of their columns."""

# In units of u_out: two roundings and their products, see the module's text.
TOLERANCE_ROUNDOFFS = 2.02

# In units of u: see the exact-sum tier in the module's text.
EXACT_SUM_ROUNDOFFS = 4.0

# The grade is the error of this many lanes, each a plain loop, with this many additions and roundings after the loops.
GRADE_LANES = 256
GRADE_STEPS = 18


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


def decide(means: Means, found: Scaling, storage: Format, sums_in: Format, sample: Sample) -> Verdict:
    """Answer both questions from what the two passes found.

    Args:
        means: sums and means of some rows.
        found: bounds on what scaled the same rows.
        storage: format of x and y.
        sums_in: format that sums live in.
        sample: called only when no single mean explains some row.
    """
    u, u_out = sums_in.roundoff, storage.roundoff
    finite = means.finite()
    tolerance = TOLERANCE_ROUNDOFFS * u_out
    misplaced = found.pattern_column >= 0
    need = _needed_tolerance(found)
    least, largest = _mean_errors(found, tolerance)

    bound = np.where(found.exact_sum, EXACT_SUM_ROUNDOFFS * u, gamma(means.columns + 1, u))
    graded = np.minimum(bound, gamma(-(-means.columns // GRADE_LANES) + GRADE_STEPS, u))
    quantum = 1.0 / means.mean_in_units_of(sums_in.quantum_exponent)
    near = plain = _meets(least, largest, bound, quantum)
    accurate = _meets(least, largest, graded, quantum)
    allowed = bound + quantum
    if storage.precision < sums_in.precision:
        stored_quantum = 1.0 / means.mean_in_units_of(storage.quantum_exponent)
        rounded_bound = bound + u_out * (1.0 + bound)
        near = plain | _meets(least, largest, rounded_bound, stored_quantum)
        accurate |= _meets(least, largest, graded + u_out * (1.0 + graded), stored_quantum)
        allowed = np.where(plain, allowed, rounded_bound + stored_quantum)

    whole = np.zeros(finite.size, np.int8)
    if found.mean_infinite.any():
        total_hi, _, total_exponent = means.total
        total = np.ldexp(total_hi, total_exponent - sums_in.overflow_exponent)
        whole[found.mean_infinite & (total * (1.0 + bound) >= 1.0 - u)] = WholeRow.MEAN_INFINITE
    whole[found.mean_zero] = WholeRow.MEAN_ZERO
    ordinary = finite & (whole == 0)
    # A mean so far off that nothing but zeros, or infinities, is left of the row.
    emptied = ordinary & ~near & ((found.low <= -1.0) | (found.high == np.inf))
    bit_exact = found.powers_of_two & found.exact_sum

    reason = np.zeros(finite.size, np.int8)
    reason[ordinary & bit_exact & (found.bits_column >= 0)] = Reason.BITS
    reason[ordinary & ~near] = Reason.MEAN
    reason[emptied] = Reason.SPECIAL
    torn = ordinary & (~(need <= tolerance) | misplaced)
    reason[torn] = Reason.SCALING
    reason[misplaced & (whole == 0)] = Reason.SPECIAL
    ok = reason == 0

    factor = _middle_factor(found)
    error = np.clip(0.0, least, largest)
    if torn.any():
        factor = np.where(torn, median_factor(*sample(), means), factor)
        error = np.where(torn, factor - 1.0, error)
    if not ordinary.all():
        factor[~finite] = np.nan
        factor[whole == int(WholeRow.MEAN_ZERO)] = 0.0
        factor[whole == int(WholeRow.MEAN_INFINITE)] = np.inf

    tier = np.full(finite.size, int(Tier.LIMIT), np.int8)
    tier[found.exact_sum] = Tier.EXACT_SUM
    tier[bit_exact] = Tier.BIT_EXACT
    tier[~finite] = Tier.SPECIAL
    return Verdict(
        ok=ok,
        reason=reason,
        tier=tier,
        whole_row=whole,
        scaling=np.where(misplaced & ~ok, np.inf, np.where(ordinary, need / u_out, 0.0)),
        factor=factor,
        mean_error=np.where(ordinary, error, 0.0),
        allowed=np.where(finite, allowed, 0.0),
        inaccurate=ok & ordinary & ~accurate,
        # A mean above one quantum of the accumulator's format can only have become zero in the storage type.
        rounded_mean=ok & np.where(ordinary, ~plain, (whole == int(WholeRow.MEAN_ZERO)) & (quantum < 1.0)),
        column=_column_to_look_at(means, found, reason, factor),
    )


def _needed_tolerance(found: Scaling) -> F64:
    """Return the smallest a for which some r satisfies both bounds, (low - high) / (low + high) in plain numbers."""
    need = (found.low - found.high) / (2.0 + found.low + found.high)
    # NaN or infinite bounds come from values out of place: no tolerance helps those.
    return np.where(found.low <= found.high, 0.0, np.where(np.isfinite(need), need, np.inf))


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
    if not reason.any():
        return found.low_column
    agreed = 1.0 / (factor * (1.0 + found.rho))
    above = (1.0 + found.low) / agreed
    below = agreed / (1.0 + found.high)
    column = np.where(below > above, found.high_column, found.low_column)
    of_mean = (reason == int(Reason.MEAN)) | (reason == int(Reason.SPECIAL))
    column = np.where(of_mean, means.largest_column, column)
    column = np.where(reason == int(Reason.BITS), found.bits_column, column)
    return np.where(found.pattern_column >= 0, found.pattern_column, column)
