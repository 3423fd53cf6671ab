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
u_out = 2^-8. The extra q covers results that are subnormal, where rounding errs by up to q / 2 instead; it does not
cover n times that, so (x / S) * n is wrong where x / S is subnormal and has lost what the result still holds.

A row is judged whole. The mean may have become infinite (a row of zeros with the signs of x) only where S (1 + e)
reaches the largest finite number of the accumulator's format; it may have become zero (infinities with the signs of x,
NaN for zeros) only where m is at most one quantum of a type it may live in. A mean that is not zero is at least that
quantum, or m (1 - e) where a wider type held it. A row never mixes two answers.

NaN in a row makes the row NaN; an infinity gives NaN in its own place and zeros with the sign of x elsewhere; a row of
zeros gives NaN. NaN are compared by position. No epsilon anywhere.

The way through: `sums` measures x, `scaling` answers question 1, `mean` question 2, `verdict` holds the answers, and
`explain` says more about one row. What is not looked at: strides, memory, devices. Nothing here uses torch or believes
a candidate: the inputs are numbers. Temporaries are bounded by the block size whatever the shape, a single row of 2^30
columns included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from reference.formats import Format, accumulator, format_of
from reference.mean import decide, gamma
from reference.scaling import RowScaling, Scaling
from reference.sums import Means, RowSums
from reference.twofold import F64
from reference.verdict import Verdict

# Elements a block: a float64 array of it is 0.5 MiB, so the arrays in use at one time stay in a second-level cache of
# 2 MiB.
BLOCK_ELEMENTS = 1 << 16

# Elements of a failed row that the median is taken over, to say which mean most of the row agrees on.
SAMPLE_COLUMNS = 2048

Fetch: TypeAlias = Callable[[slice, slice], tuple[F64, F64]]
"""Returns x[rows, columns] and y[rows, columns] as float64; the column slice may have a step."""


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
            f"x is {x.dtype} {x.shape} and y is {y.dtype} {y.shape}: pass two float64 arrays of one 2-D shape"
        )
    rows, columns = x.shape
    return judge_blocks(
        lambda some_rows, some_columns: (x[some_rows, some_columns], y[some_rows, some_columns]),
        rows,
        columns,
        dtype,
        block_elements=block_elements,
    )


@np.errstate(all="ignore")
def judge_blocks(fetch: Fetch, rows: int, columns: int, dtype: str, *, block_elements: int = BLOCK_ELEMENTS) -> Verdict:
    """Judge a result that is read block by block.

    Rows longer than a block are fetched twice, in pieces and in ascending order; rows that fail are sampled once more.

    Args:
        fetch: gives a block of x and y, see `Fetch`; it must give the same values every time.
        rows: number of rows.
        columns: number of columns.
        dtype: name of the storage type, with or without "torch.".
        block_elements: largest number of elements that is fetched at one time.

    Raises:
        ValueError: the dtype is unknown, or block_elements is below 1.
    """
    if block_elements < 1:
        raise ValueError(f"block_elements is {block_elements}: pass a number of elements, at least 1")
    storage, sums_in = format_of(dtype), accumulator(dtype)
    if rows == 0 or columns == 0:
        return Verdict.of_empty_rows(rows)
    height = max(1, min(rows, block_elements // columns))
    pieces = -(-columns // block_elements)
    width = -(-columns // pieces)
    # An odd step meets every lane of a warp and every slot of a vector, so the sample speaks for all of them.
    step = -(-columns // SAMPLE_COLUMNS) | 1
    parts = []
    for top in range(0, rows, height):
        part = slice(top, min(top + height, rows))
        means, scaling = _measure(fetch, part, columns, width, storage, sums_in)
        parts.append(decide(means, scaling, storage, sums_in, partial(fetch, part, slice(0, columns, step))))
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
