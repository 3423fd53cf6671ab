"""Row sums and means of |x| to about 100 bits, streamed over chunks of columns.

Chunks may be cut anywhere: the sum of a row that the exact-sum tier covers comes out exact, any other to within 2^-100
of itself, and neither depends on the cut beyond that. The method is the extraction of Rump, Ogita and Oishi (Accurate
Floating-Point Summation Part I, SIAM J. Sci. Comput. 31, 2008, algorithm 3.2): adding and subtracting a power of two
cuts each number into a leading part, whose sums are exact in any order, and a rest 2^53 times smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from reference.twofold import F64, Bools, Index, Ints, divide, normalized, two_sum

# Rows whose largest element reaches 2^900 are summed in units of 2^200: then neither the sum of 2^40 elements nor the
# power of two used for extraction can overflow. What the smaller elements lose is below 2^-874, 2^-1700 of the sum.
_LARGE = 2.0**900
_LARGE_SHIFT = 200

# Below this many columns numpy sums a transposed copy several times faster than row by row.
_FEW_COLUMNS = 32


class Kind(IntEnum):
    """What a row holds, which decides the rule that it is judged by."""

    FINITE = 0
    """Finite numbers, not all of them zero."""
    ZERO = 1
    """Zeros of either sign only."""
    INFINITE = 2
    """At least one infinity and no NaN."""
    NAN = 3
    """At least one NaN."""


@dataclass(frozen=True, slots=True)
class Means:
    """Sum and mean of |x| of each row; only rows of kind FINITE have a meaningful sum and mean.

    Attributes:
        columns: row length n.
        kind: `Kind` of each row, as int8.
        largest: the largest |x| of the row; NaN or infinite where the row holds one.
        largest_column: the first column that holds it.
        total: S = (total[0] + total[1]) * 2^total[2], total[0] in [0.5, 1).
        mean: m = S / n in the same form.
    """

    columns: int
    kind: np.ndarray[tuple[int], np.dtype[np.int8]]
    largest: F64
    largest_column: Index
    total: tuple[F64, F64, Ints]
    mean: tuple[F64, F64, Ints]

    def finite(self) -> Bools:
        """Return which rows are of kind FINITE."""
        finite: Bools = self.kind == 0
        return finite

    def mean_in_units_of(self, power: int) -> F64:
        """Return m / 2^power, rounded to double."""
        hi, _, exponent = self.mean
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(hi, exponent - power)


def row_sums(x: F64) -> F64:
    """Return plain float64 sums along axis 1."""
    if 1 < x.shape[1] < _FEW_COLUMNS:
        x = np.asfortranarray(x)
    return np.asarray(x.sum(axis=1))


class RowSums:
    """Accumulates sum(|x|) and max(|x|) of a fixed set of rows, chunk by chunk of columns.

    Working memory is three arrays of the chunk's size.
    """

    def __init__(self, rows: int) -> None:
        self._row = np.arange(rows)
        self._seen = 0
        self._largest = np.full(rows, -1.0)
        self._largest_column = np.zeros(rows, dtype=np.intp)
        self._hi = np.zeros(rows)
        self._lo = np.zeros(rows)
        self._shift = np.zeros(rows, dtype=np.int32)

    @np.errstate(all="ignore")
    def add(self, x: F64) -> None:
        """Add the next columns.

        Args:
            x: array (rows, chunk) of float64, values of the storage type widened exactly; not changed.
        """
        width = x.shape[1]
        if width == 0:
            return
        rest = np.abs(x)
        column = rest.argmax(axis=1)
        largest = rest[self._row, column]
        # argmax finds the first NaN as the largest, and nothing may replace it.
        better = (largest > self._largest) | (np.isnan(largest) & ~np.isnan(self._largest))
        self._largest_column = np.where(better, column + self._seen, self._largest_column)
        self._largest = np.where(better, largest, self._largest)
        self._seen += width

        shift = np.where(largest >= _LARGE, _LARGE_SHIFT, 0).astype(np.int32)
        if shift.any():
            scale = np.ldexp(1.0, -shift)
            rest *= scale[:, None]
            largest = largest * scale
        hi, lo = _extracted_sums(rest, largest)
        self._accumulate(hi, lo, shift)

    def _accumulate(self, hi: F64, lo: F64, shift: Ints) -> None:
        if shift.any() or self._shift.any():
            common = np.maximum(shift, self._shift)
            hi, lo = np.ldexp(hi, shift - common), np.ldexp(lo, shift - common)
            self._hi = np.ldexp(self._hi, self._shift - common)
            self._lo = np.ldexp(self._lo, self._shift - common)
            self._shift = common
        total, error = two_sum(self._hi, hi)
        self._hi, self._lo = two_sum(total, error + (self._lo + lo))

    @np.errstate(all="ignore")
    def finish(self) -> Means:
        """Return sums and means over the columns added so far, at least one."""
        if self._seen == 0:
            raise ValueError("a mean needs at least one column: add a chunk before finish()")
        largest = self._largest
        kind = np.where(largest == 0.0, np.int8(Kind.ZERO), np.int8(Kind.FINITE))
        kind = np.where(np.isinf(largest), np.int8(Kind.INFINITE), kind)
        kind = np.where(np.isnan(largest), np.int8(Kind.NAN), kind)
        ordinary = kind == Kind.FINITE
        # Rows of the other kinds get the sum 1, so that what follows needs no special case.
        total = normalized(np.where(ordinary, self._hi, 1.0), np.where(ordinary, self._lo, 0.0), self._shift)
        count = np.float64(self._seen)
        quotient = divide(total[0], total[1], np.full_like(total[0], count), np.zeros_like(total[0]))
        return Means(self._seen, kind, largest, self._largest_column, total, normalized(*quotient, total[2]))


def _extracted_sums(rest: F64, largest: F64) -> tuple[F64, F64]:
    """Return the row sums of nonnegative numbers as two doubles; `rest` is used up.

    With 2^M >= chunk width and every number below 2^E, adding and subtracting sigma = 2^(M+E) leaves of each number a
    multiple of 2^-52 sigma of at most 2^-M sigma: such parts sum exactly in any order. The remainders are at most
    2^-53 sigma, so a second pass works with 2^(M-53) sigma, and what then remains is below 2^(2M-106) of the largest
    element and may be summed in plain float64.
    """
    width_bits = (rest.shape[1] - 1).bit_length()
    _, exponent = np.frexp(largest)
    sigma = np.ldexp(1.0, exponent + width_bits)[:, None]
    sums = []
    part = np.empty_like(rest)
    for _ in range(2):
        np.add(rest, sigma, out=part)
        part -= sigma
        sums.append(row_sums(part))
        rest -= part
        sigma = sigma * 2.0 ** (width_bits - 53)
    hi, lo = two_sum(sums[0], sums[1])
    return two_sum(hi, lo + row_sums(rest))
