"""Numbers held as an unevaluated sum of two doubles and a power of two, elementwise on numpy arrays.

A value is (hi + lo) * 2^exponent, lo being what hi could not hold, so a little more than 100 bits; the exponent stands
apart, so nothing overflows or underflows. Only float64 arithmetic that rounds to nearest is assumed: numpy's longdouble
is 80 bits, 128 bits or plain double depending on the platform, and numpy offers no fused multiply-add.

Sources: two_sum is Knuth's and two_product Dekker's with Veltkamp's splitting (Muller et al., Handbook of
Floating-Point Arithmetic, 2nd ed., sections 4.3 and 4.4).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from reference.formats import Format

F64: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int32]
Index: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]

# 2^27 + 1 cuts a significand of 53 bits into two of at most 26, whose products are exact.
_SPLITTER = 134217729.0


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Return s and e with s = fl(a + b) and s + e = a + b exactly, whatever the order of magnitude of a and b."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def split(a: F64) -> tuple[F64, F64]:
    """Return two arrays of at most 26 significant bits each whose sum is a; |a| must be below 2^995."""
    high = a * _SPLITTER
    high = high - (high - a)
    return high, a - high


def two_product(a: F64, b: F64, b_split: tuple[F64, F64] | None = None) -> tuple[F64, F64]:
    """Return p and e with p = fl(a * b) and p + e = a * b exactly; both factors of moderate size.

    Args:
        a: first factor.
        b: second factor, of a shape that broadcasts against a.
        b_split: `split(b)`, where the caller multiplies by the same b repeatedly.
    """
    product = a * b
    a_high, a_low = split(a)
    b_high, b_low = split(b) if b_split is None else b_split
    error = a_high * b_high
    error -= product
    error += a_high * b_low
    error += a_low * b_high
    error += a_low * b_low
    return product, error


def normalized(hi: F64, lo: F64, exponent: Ints) -> tuple[F64, F64, Ints]:
    """Return the same value with hi in [0.5, 1), or all zeros."""
    total, rest = two_sum(hi, lo)
    mantissa, shift = np.frexp(total)
    return mantissa, np.ldexp(rest, -shift), (exponent + shift).astype(np.int32)


def divide(hi: F64, lo: F64, by_hi: F64, by_lo: F64) -> tuple[F64, F64]:
    """Return (hi + lo) / (by_hi + by_lo) to about 2^-103, both operands of moderate size, the divisor not zero."""
    quotient = hi / by_hi
    product, error = two_product(quotient, by_hi)
    rest = (((hi - product) - error) + lo) - quotient * by_lo
    return two_sum(quotient, rest / by_hi)


def round_to(form: Format, hi: F64, lo: F64, exponent: Ints) -> F64:
    """Round (hi + lo) * 2^exponent to a format, nearest and ties to even, in one rounding.

    Subnormal numbers and overflow are the format's own; a zero keeps the sign of hi. A tie of hi is broken by lo, so
    the result is the correctly rounded one wherever the two doubles tell the value from a tie.

    Returns:
        The rounded numbers, each widened exactly to float64.
    """
    _, magnitude = np.frexp(hi)
    last_place = np.maximum(magnitude + exponent - form.precision, form.quantum_exponent)
    scaled = np.ldexp(hi, exponent - last_place)
    rounded = np.rint(scaled)
    tie = (np.abs(scaled - np.trunc(scaled)) == 0.5) & (lo != 0.0)
    if tie.any():
        rounded = np.where(tie, np.where(lo > 0.0, np.ceil(scaled), np.floor(scaled)), rounded)
    with np.errstate(over="ignore"):
        result = np.ldexp(rounded, last_place)
    return np.where(np.abs(result) > form.largest, np.copysign(np.inf, result), result)
