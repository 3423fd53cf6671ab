"""What the contract says of each row: the answers as numbers, without words.

The enums name the answers; reports turn them into sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from reference.twofold import F64, Bools, Index

Codes: TypeAlias = npt.NDArray[np.int8]


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
        scaling: smallest tolerance at which question 1 has an answer, in units of u_out (accepted up to 2.02; inf where
            a special value is out of place).
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
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

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
