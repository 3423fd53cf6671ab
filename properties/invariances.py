"""What must not change the result, or changes it in a known way: how these properties are checked."""

from __future__ import annotations

import torch

from reference.formats import FORMATS

from . import comparisons, strategies, values
from .cases import Case
from .findings import Finding, Kind
from .trial import Trial

#: A row's bits are promised where it starts at the same place in a line of this many bytes: kernels cut rows there.
_LINE = 128

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


def rows_in_other_order(trial: Trial, case: Case) -> None:
    """The rows (of dimension 0) in an order that the turn draws, and one of them alone."""
    plain = trial.build(case)
    first = trial.check(plain)
    order = values.order(case.shape[0], case.turn, plain.logical.device)
    second = trial.check(trial.place(case, plain.logical[order]))
    slab = case.numel // case.shape[0] * plain.logical.element_size()
    steady = (torch.arange(len(order), device=order.device) - order) * slab % _LINE == 0
    comparisons.expect_same(trial, plain, first[order], second, "its rows change places", steady)
    comparisons.expect_near(trial, first[order], second, "its rows change places")
    alone = int(order[0])
    single = Case((1, *case.shape[1:]), case.dtype)
    result = trial.check(trial.place(single, plain.logical[alone : alone + 1].contiguous()))
    comparisons.expect_near(trial, first[alone : alone + 1], result, f"row {alone} is all there is")


def columns_in_other_order(trial: Trial, case: Case) -> None:
    """The columns in an order that the turn draws."""
    plain = trial.build(case)
    first = trial.check(plain)
    order = values.order(case.columns, case.turn, plain.logical.device)
    second = trial.check(trial.place(case, plain.logical[:, order]))
    comparisons.expect_near(trial, first[:, order], second, "its columns change places")


def again(trial: Trial, case: Case) -> None:
    """The result, as an input."""
    first = trial.check(trial.build(case))
    second = trial.check(trial.place(case, first.clone()))
    comparisons.expect_near(trial, first, second, "it is applied to its own result")


def total(trial: Trial, case: Case) -> None:
    """The sizes of a row's results add up to the number of columns."""
    result = trial.check(trial.build(case))
    sums = result.double().abs().sum(1)
    allowed = case.columns * (trial.subject.operator.spread(case.columns, case.dtype) + comparisons.quantum(result))
    off = (sums - case.columns).abs()
    wrong = (off > allowed) & sums.isfinite()
    if bool(wrong.any()):
        place = int(off.where(wrong, torch.zeros_like(off)).argmax())
        text = f"the sizes of a row add up to {float(sums.view(-1)[place]):.9g}, expected {case.columns} = columns"
        trial.report(Finding(Kind.WRONG_VALUE, f"{text} within {allowed:.2g}"))
