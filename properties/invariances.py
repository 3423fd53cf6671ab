"""What must not change the result, or changes it in a known way: scale, sign, order, neighbours, the result itself."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from reference.formats import FORMATS

from . import comparisons, strategies, values
from .cases import Case, parse
from .examination import Property
from .figures import apart
from .findings import Finding, Kind
from .strategies import Domain
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
    other = trial.place(case, (plain.logical.double() * factor).to(plain.logical.dtype))
    second = trial.check(other)
    comparisons.expect_same(trial, (plain, first), (other, second), f"its input is multiplied by 2^{case.turn}")


def scaled(trial: Trial, case: Case) -> None:
    """The input times one of `FACTORS`."""
    plain = trial.build(case)
    trial.check(trial.place(case, plain.logical * FACTORS[case.turn % len(FACTORS)]))


def negated(trial: Trial, case: Case) -> None:
    """The input, and minus the input."""
    plain = trial.build(case)
    first = trial.check(plain)
    other = trial.place(case, -plain.logical)
    second = trial.check(other)
    change = "its input is negated (the signs of the result aside)"
    comparisons.expect_same(trial, (plain, first), (other, second), change, undone=torch.neg)


def isolated(trial: Trial, case: Case) -> None:
    """The input, and the input with one row filled with a special value; the turn says which row and value."""
    plain = trial.build(case)
    first = trial.check(plain)
    rows, what = case.shape[0], strategies.PLANTABLE[case.turn % len(strategies.PLANTABLE)]
    row = case.turn // len(strategies.PLANTABLE) % rows
    spoilt = plain.logical.clone()
    spoilt[row] = values.special(what, FORMATS[case.dtype])
    other = trial.place(case, spoilt)
    second = trial.check(other)
    others = torch.arange(rows) != row
    change = f"another row ({row}) is filled with {what}"
    comparisons.expect_same(trial, (plain, first), (other, second), change, others)


def rows_in_other_order(trial: Trial, case: Case) -> None:
    """The rows (of dimension 0) in an order that the turn draws, and one of them alone."""
    plain = trial.build(case)
    first = trial.check(plain)
    order = values.order(case.shape[0], case.turn, plain.logical.device)
    second = trial.check(trial.place(case, plain.logical[order]))
    slab = case.numel // case.shape[0] * plain.logical.element_size()
    if "determinism" in trial.subject.required:
        # Of others no bits: a program may add up the rows that are left over in another order than the rest.
        steady = (torch.arange(len(order), device=order.device) - order) * slab % _LINE == 0
        comparisons.expect_bits(trial, first[order][steady], second[steady], "its rows change places")
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
        added, _ = apart(float(sums.view(-1)[place]), case.columns)
        text = f"the sizes of a row add up to {added}, expected {case.columns} = columns"
        trial.report(Finding(Kind.WRONG_VALUE, f"{text} within {allowed:.2g}"))


#: Powers of two that keep x, m, y and 1/m normal for the recipes used (float16's normal range is 2^-14 to 2^15).
_TURNS = {"fp32": 90, "fp64": 90, "bf16": 90, "fp16": 2}

SCALE_TWO = Property(
    "scale-by-two",
    "f(2^k x) = f(x), of the shipped kernel bit for bit.",
    lambda domain, _: st.one_of(
        [
            strategies.cases(
                Domain(domain.supported - _dtypes_but(dtype, domain)),
                ("ones", "integers", "signed", "exact-mean", "constant"),
                elements=1 << 14,
                turns=st.integers(-most, most),
            )
            for dtype, most in _TURNS.items()
            if dtype in domain.supported
        ]
    ),
    scaled_by_two,
    pinned=(parse("shape=3x257,seed=9,turn=-60"), parse("shape=3x257,seed=9,turn=60")),
    applies=lambda operator: operator.scale_invariant,
)


def _dtypes_but(name: str, domain: Domain) -> frozenset[str]:
    return frozenset({"fp32", "fp64", "bf16", "fp16"} & domain.supported) - {name}


SCALE_ANY = Property(
    "scale-by-any",
    "f(c x) is right for factors c that are no powers of two.",
    lambda domain, _: strategies.cases(
        domain, ("integers", "signed", "heavy"), elements=1 << 14, turns=st.integers(0, len(FACTORS) - 1)
    ),
    scaled,
    applies=lambda operator: operator.scale_invariant,
)


ODD = Property(
    "odd",
    "f(-x) = -f(x).",
    lambda domain, _: strategies.cases(domain, (*strategies.GENERAL, *strategies.EXTREME), elements=1 << 14),
    negated,
    pinned=(parse("shape=3x257,seed=9"), parse("shape=7x1025,seed=27")),
    applies=lambda operator: operator.odd,
)


#: Values whose means, and whose results' means, are normal in every type.
_PLAIN = ("ones", "integers", "signed", "exact-mean", "constant", "one-hot")
_ANY_ORDER = st.integers(0, 1000)

ROW_ORDER = Property(
    "row-order",
    "Rows that change places take their results along, and a row alone has the result that it has among others.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, turns=_ANY_ORDER, empty=False),
    rows_in_other_order,
    # Rows of 256 columns all start alike, of 257 every thirty-second.
    pinned=(
        parse("shape=64x256,seed=17,turn=1"),
        parse("shape=64x257,seed=17,turn=1"),
        parse("shape=7x33x5,seed=17,turn=2"),
    ),
)

COLUMN_ORDER = Property(
    "column-order",
    "Columns that change places take their results along.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, turns=_ANY_ORDER, empty=False),
    columns_in_other_order,
    pinned=(parse("shape=3x257,seed=18,turn=1"), parse("shape=2x65535,seed=18,turn=2")),
)

IDEMPOTENT = Property(
    "idempotence",
    "f(f(x)) = f(x).",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, empty=False),
    again,
    pinned=(parse("shape=3x257,seed=19"),),
    applies=lambda operator: operator.idempotent,
)

TOTAL = Property(
    "total",
    "The sizes of a row's results add up to the number of its columns.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, empty=False),
    total,
    pinned=(
        parse("shape=3x257,seed=20"),
        parse("shape=3x257,values=constant,seed=20"),
        parse("shape=3x257,values=one-hot"),
    ),
    applies=lambda operator: operator.sums_to_columns,
)

ISOLATED = Property(
    "row-isolation",
    "NaN, an infinity or a huge value in one row never reaches another.",
    lambda domain, _: st.builds(
        lambda shape, dtype, recipe, seed, turn: Case(shape, dtype, values=recipe, seed=seed, turn=turn),
        strategies.matrices(1 << 14, least_rows=2),
        st.sampled_from(domain.dtypes),
        st.sampled_from(("ones", "integers", "signed", "tiny")),
        strategies.seeds(),
        st.integers(0, 10**6),
    ),
    isolated,
    pinned=(parse("shape=3x257,seed=10,turn=10"), parse("shape=3x33,seed=10,turn=12")),
)
