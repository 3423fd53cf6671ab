"""The contract once more in rational numbers, one row at a time: slow, plain, independent of the oracle's arithmetic.

Shares with the oracle the four formats' parameters and nothing else; used on small rows to check it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from reference.formats import Format, accumulator, format_of


@dataclass(frozen=True)
class RowByFractions:
    """What the contract says of a row of finite numbers that are not all zero.

    Attributes:
        ok: accepted.
        need: smallest tolerance of question 1, None where no tolerance helps.
    """

    ok: bool
    need: Fraction | None


def rounded(value: Fraction, form: Format) -> float:
    """Round to the nearest number of a format, ties to even; overflow gives infinity."""
    size = abs(value)
    if size == 0:
        return 0.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    place = Fraction(2) ** max(exponent - form.precision + 1, form.quantum_exponent)
    size = round(size / place) * place
    result = math.inf if size >= Fraction(2) ** form.overflow_exponent else float(size)
    return result if value > 0 else -result


def judge(x: list[float], y: list[float], dtype: str, slack: Fraction = Fraction(0)) -> RowByFractions:
    """Judge one row by the contract.

    Args:
        x: finite inputs, not all zero.
        y: results.
        dtype: storage type.
        slack: every bound is widened (or, if negative, narrowed) by this part of itself.
    """
    form, sums_in = format_of(dtype), accumulator(dtype)
    columns = len(x)
    total = sum((abs(Fraction(value)) for value in x), Fraction(0))
    mean = total / columns
    widened = 1 + slack
    exact, bit_exact = _tiers(x, total, mean, form, sums_in)
    error = _error(columns, exact, sums_in) * widened

    if _is_whole_row(x, y, mean, total, error, form, sums_in):
        return RowByFractions(ok=True, need=Fraction(0))
    if any(
        math.isnan(b) or math.copysign(1, a) != math.copysign(1, b) or (a == 0 != b) for a, b in zip(x, y, strict=True)
    ):
        return RowByFractions(ok=False, need=None)

    low, high = _bounds(x, y, form)
    tolerance = Fraction(202, 100) * Fraction(form.roundoff) * widened
    need = Fraction(0)
    if high is not None and low > high:
        need = (low - high) / (low + high)
    if need > tolerance:
        return RowByFractions(ok=False, need=need)
    # mean' = 1/r; none is the infinite one.
    least = (1 - tolerance) / high if high is not None else Fraction(0)
    largest = (1 + tolerance) / low if low > 0 else None
    ok = _near(least, largest, mean, error, Fraction(sums_in.quantum) * widened)
    if form.precision < sums_in.precision:
        roundoff = Fraction(form.roundoff) * widened
        rounded_error = error + roundoff * (1 + error)
        ok = ok or _near(least, largest, mean, rounded_error, Fraction(form.quantum) * widened)
    if bit_exact:
        ok = ok and all(b == rounded(Fraction(a) / mean, form) for a, b in zip(x, y, strict=True))
    return RowByFractions(ok=ok, need=need)


def _bounds(x: list[float], y: list[float], form: Format) -> tuple[Fraction, Fraction | None]:
    quantum = Fraction(form.quantum)
    threshold = Fraction(2) ** form.overflow_exponent * (1 - Fraction(2) ** (-form.precision - 1))
    low, high = Fraction(0), None
    for a, b in zip(x, y, strict=True):
        if a == 0:
            continue
        size = abs(Fraction(a))
        if math.isinf(b):
            low = max(low, threshold / size)
        else:
            low = max(low, (abs(Fraction(b)) - quantum) / size)
            upper = (abs(Fraction(b)) + quantum) / size
            high = upper if high is None else min(high, upper)
    return low, high


def _tiers(x: list[float], total: Fraction, mean: Fraction, form: Format, sums_in: Format) -> tuple[bool, bool]:
    # The largest power of two that divides every element: lowest set bits of numerators over denominators.
    parts = [abs(Fraction(value)) for value in x if value != 0]
    grid = min(Fraction(part.numerator & -part.numerator, part.denominator) for part in parts)
    exact = total / grid <= 2**sums_in.precision and total < Fraction(2) ** sums_in.overflow_exponent
    powers = all(part & (part - 1) == 0 for part in (len(x), total.numerator, total.denominator))
    held = mean >= max(Fraction(form.quantum), Fraction(sums_in.quantum))
    return exact, exact and powers and held


def _error(columns: int, exact: bool, sums_in: Format) -> Fraction:
    roundoff = Fraction(sums_in.roundoff)
    return 4 * roundoff if exact else (columns + 1) * roundoff / (1 - (columns + 1) * roundoff)


def _is_whole_row(
    x: list[float], y: list[float], mean: Fraction, total: Fraction, error: Fraction, form: Format, sums_in: Format
) -> bool:
    pairs = list(zip(x, y, strict=True))
    signs = all(math.copysign(1, a) == math.copysign(1, b) for a, b in pairs if not math.isnan(b))
    overflowed = total * (1 + error) >= Fraction(sums_in.largest) and all(b == 0 for _, b in pairs)
    vanished = mean <= max(Fraction(form.quantum), Fraction(sums_in.quantum)) and all(
        math.isnan(b) if a == 0 else math.isinf(b) for a, b in pairs
    )
    return signs and (overflowed or vanished)


def _near(least: Fraction, largest: Fraction | None, mean: Fraction, error: Fraction, quantum: Fraction) -> bool:
    lowest = max(mean * (1 - error) - quantum, min(quantum, mean * (1 - error)))
    return least <= mean * (1 + error) + quantum and (largest is None or largest >= lowest)
