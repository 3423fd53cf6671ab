"""More about one row than its verdict: the exact results, which elements are wrong, and how far each may be off.

For reports on rows that a person will read; memory is about twenty float64 arrays of the row's length.
"""

from __future__ import annotations

import numpy as np

from reference.exact import judge_rows
from reference.formats import format_of
from reference.mean import TOLERANCE_ROUNDOFFS, median_factor
from reference.scaling import quotient_by_power, wide_bounds
from reference.sums import Kind, Means, RowSums
from reference.twofold import F64, Bools, divide, round_to
from reference.verdict import Reason, Verdict


@np.errstate(all="ignore")
def expected(x_row: F64, dtype: str) -> F64:
    """Return the exact quotients of a row, each rounded once to the storage type.

    Correctly rounded but for quotients within 2^-95 of the middle between two numbers, which may go to either.

    Args:
        x_row: inputs (columns,) as float64, values of the storage type widened exactly.
        dtype: name of the storage type, with or without "torch.".

    Returns:
        Array (columns,) of float64, values of the storage type; NaN, infinities and signed zeros by the contract. The
        mean is the exact one here, so neither a sum that overflows nor a mean that underflows shows.
    """
    form = format_of(dtype)
    if x_row.size == 0:
        return x_row.copy()
    means = _means_of(x_row)
    kind = means.kind[0]
    if kind == Kind.INFINITE:
        return np.where(np.isinf(x_row), np.nan, np.copysign(0.0, x_row))
    if kind != Kind.FINITE:
        return np.full_like(x_row, np.nan)
    x_part, x_power = np.frexp(x_row)
    hi, lo, exponent = means.mean
    quotient, rest = divide(x_part, np.zeros_like(x_part), hi, lo)
    # A zero has lost its sign in the division's last step.
    return round_to(form, np.where(x_row == 0.0, x_row, quotient), rest, x_power - exponent)


def bound(expected_value: float, mean_error: float, dtype: str) -> float:
    """Return how far a result may be from the exact quotient, both questions taken together.

    |y' - x / mean'| <= 2.02 u_out |x / mean'| + q and |mean' - m| <= E m give
    |y' - x / m| <= |x / m| ((1 + 2.02 u_out) / (1 - E) - 1) + q.

    Args:
        expected_value: the exact quotient x / m.
        mean_error: E, the error that the row's mean may have, `Verdict.allowed`.
        dtype: name of the storage type.

    Returns:
        The absolute bound; infinite where E allows any mean.
    """
    form = format_of(dtype)
    if not mean_error < 1.0 or not np.isfinite(expected_value):
        return float("inf")
    relative = (TOLERANCE_ROUNDOFFS * form.roundoff + mean_error) / (1.0 - mean_error)
    return abs(expected_value) * relative + form.quantum


@np.errstate(all="ignore")
def offending(x_row: F64, y_row: F64, dtype: str) -> Bools:
    """Return which elements of a row are wrong.

    Where most elements agree on one mean, those are wrong that do not agree; a row that agrees altogether, but on a
    wrong mean, is wrong wherever the exact mean contradicts it, and so is a row without agreement. Values out of place
    (signs, zeros, NaN, infinities) are always wrong.

    Args:
        x_row: inputs (columns,) as float64.
        y_row: results (columns,) as float64.
        dtype: name of the storage type, with or without "torch.".

    Returns:
        Boolean array (columns,), all false exactly where the row is accepted.
    """
    x, y = np.ascontiguousarray(x_row)[None, :], np.ascontiguousarray(y_row)[None, :]
    verdict = judge_rows(x, y, dtype)
    if verdict.accepted:
        return np.zeros(x_row.shape, np.bool_)
    wrong = _wrong_elements(x, y, dtype, verdict)
    # A mean just out of bounds may contradict no single element; then the row's witness stands for all.
    if not wrong.any():
        wrong[0, verdict.column[0]] = True
    return wrong.reshape(x_row.shape)


def _wrong_elements(x: F64, y: F64, dtype: str, verdict: Verdict) -> Bools:
    form = format_of(dtype)
    means = _means_of(x[0])
    misplaced = _misplaced(x, y, int(means.kind[0]))
    if means.kind[0] != Kind.FINITE:
        return misplaced
    if verdict.reason[0] == Reason.BITS:
        different: Bools = y != quotient_by_power(x, means.mean[2] - 1, form)
        return different
    tolerance = TOLERANCE_ROUNDOFFS * form.roundoff
    if verdict.reason[0] != Reason.MEAN:
        apart = _off_the_agreed_mean(x, y, dtype, means)
        if apart is not None and (apart | misplaced).any():
            return apart | misplaced
    hi, _, exponent = means.mean
    low, high = wide_bounds(x, y, form, 1.0 / hi, -exponent)
    error = float(verdict.allowed[0])
    most = (1.0 + tolerance) / (1.0 - error) - 1.0 if error < 1.0 else np.inf
    least = (1.0 - tolerance) / (1.0 + error) - 1.0
    return ~(low <= most) | ~(high >= least) | misplaced


def _means_of(x_row: F64) -> Means:
    sums = RowSums(1)
    sums.add(x_row[None, :])
    return sums.finish()


def _misplaced(x: F64, y: F64, kind: int) -> Bools:
    """Return where a value is of the wrong kind: NaN, zero or sign; a quotient's overflow is not looked at."""
    signs_differ: Bools = np.signbit(x) != np.signbit(y)
    if kind == Kind.INFINITE:
        return np.where(np.isinf(x), ~np.isnan(y), (y != 0.0) | signs_differ)
    if kind != Kind.FINITE:
        return ~np.isnan(y)
    of_zero: Bools = (x == 0.0) & (y != 0.0)
    return np.isnan(y) | signs_differ | of_zero


def _off_the_agreed_mean(x: F64, y: F64, dtype: str, means: Means) -> Bools | None:
    """Return which elements differ from the mean that more than half of the nonzero ones agree on, or None."""
    form = format_of(dtype)
    tolerance = TOLERANCE_ROUNDOFFS * form.roundoff
    factor = np.abs(median_factor(x, y, means))
    if not np.isfinite(factor[0]) or factor[0] == 0.0:
        return None
    r_part, r_power = np.frexp(1.0 / (factor * means.mean[0]))
    low, high = wide_bounds(x, y, form, r_part, r_power - means.mean[2])
    nonzero = x != 0.0
    # The median is one element's own ratio, itself off by up to the tolerance: look twice as wide, then centre.
    near = nonzero & (low <= 2.0 * tolerance) & (high >= -2.0 * tolerance)
    if 2 * int(near.sum()) <= int(nonzero.sum()):
        return None
    centre = (low[near].max() + high[near].min()) / 2.0
    reach = tolerance * (1.0 + centre)
    together: Bools = (low - centre <= reach) & (high - centre >= -reach)
    return ~together
