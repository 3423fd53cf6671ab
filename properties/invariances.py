"""What must not change the result, or changes it in a known way: how these properties are checked."""

from __future__ import annotations

import torch

from reference.formats import FORMATS

from . import comparisons, strategies, values
from .cases import Case
from .trial import Trial

#: Not powers of two: the product is rounded, and the oracle judges the rounded input.
FACTORS = (3.0, -0.1, 1e3, 7e-4, 1.0000001, -12345.678)


def scaled_by_two(trial: Trial, case: Case) -> None:
    """The input, and 2^turn times it."""
    plain = trial.build(case)
    first = trial.check(plain)
    factor = torch.tensor(2.0, dtype=torch.float64) ** case.turn
    second = trial.check(trial.place(case, (plain.logical.double() * factor).to(plain.logical.dtype)))
    comparisons.expect_same(trial, plain, first, second, f"its input is multiplied by 2^{case.turn}")


def scaled(trial: Trial, case: Case) -> None:
    """The input times one of `FACTORS`."""
    plain = trial.build(case)
    trial.check(trial.place(case, plain.logical * FACTORS[case.turn % len(FACTORS)]))


def negated(trial: Trial, case: Case) -> None:
    """The input, and minus the input."""
    plain = trial.build(case)
    first = trial.check(plain)
    second = trial.check(trial.place(case, -plain.logical))
    comparisons.expect_same(trial, plain, first, -second, "its input is negated (the signs of the result aside)")


def isolated(trial: Trial, case: Case) -> None:
    """The input, and the input with one row filled with a special value; the turn says which row and value."""
    plain = trial.build(case)
    first = trial.check(plain)
    rows, what = case.shape[0], strategies.PLANTABLE[case.turn % len(strategies.PLANTABLE)]
    row = case.turn // len(strategies.PLANTABLE) % rows
    spoilt = plain.logical.clone()
    spoilt[row] = values.special(what, FORMATS[case.dtype])
    second = trial.check(trial.place(case, spoilt))
    others = torch.arange(rows) != row
    comparisons.expect_same(trial, plain, first, second, f"another row ({row}) is filled with {what}", others)
