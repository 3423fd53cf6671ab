"""All properties: each one sentence, and the code that checks it. The tests and ``--case`` use this list.

What every single call is judged on (`judge`) is not repeated here: the contract on values, the input untouched with
everything around it, exactly a fresh ``torch.Tensor`` of the right shape, dtype and device.
"""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from reference.formats import FORMATS

from . import comparisons, interface, judge, strategies, values
from .cases import Case
from .cases import parse as _case
from .engine import Property
from .findings import Finding, Kind
from .inputs import Input
from .observation import Outcome
from .strategies import Domain
from .trial import StopError, Trial


def _plain(trial: Trial, case: Case) -> None:
    """One call."""
    trial.check(trial.build(case))


# --- values -----------------------------------------------------------------------------------------------------------


@st.composite
def _many_rows(draw: st.DrawFn, domain: Domain) -> Case:
    edges = [near for size in (1024, 4096, 16384, 32768, 65536) for near in (size - 1, size, size + 1)]
    rows = draw(st.sampled_from(edges) | st.integers(1000, 80000))
    length = draw(st.integers(1, 4) | st.integers(1, 33))
    recipe = draw(st.sampled_from(("integers", "signed", "row-scales", "zero-rows")))
    dtype = draw(st.sampled_from(domain.dtypes))
    return Case((rows, min(length, max(1, (1 << 18) // rows))), dtype, values=recipe, seed=draw(strategies.seeds()))


SHAPES = Property(
    "shapes",
    "On a contiguous input of any shape the result is the reference's.",
    lambda domain, _: strategies.cases(domain),
    _plain,
    pinned=tuple(
        _case(line)
        for line in (
            *(f"shape=3x{n},values=ones" for n in (1, 31, 33, 129, 159, 180, 320, 1536, 2880)),
            *(f"shape=5x{n},seed=1" for n in (255, 256, 257, 1023, 1025, 4097)),
            "shape=4x65535,seed=2",
            "shape=1x65536,seed=2",
            "shape=2000x1000,seed=2",
            "shape=300x4096,values=heavy,seed=2",
            "shape=3x5x70,seed=3",
            "shape=7x300x70,seed=3",
            "shape=70x5x3,seed=3",
            "shape=1x1,values=signed",
            "shape=2x3x5x7,seed=3",
            "shape=2x64x33x35,seed=3",
            "shape=0x128",
            "shape=4x0",
            "shape=0x0",
            "shape=4x65535,dtype=float16,values=ones",
            "shape=4x65535,dtype=bfloat16,values=ones",
            "shape=4x4095,dtype=float16,values=huge",
        )
    ),
)

MANY_ROWS = Property(
    "many-rows",
    "However many rows there are, every one of them is right, the last included.",
    lambda domain, _: _many_rows(domain),
    _plain,
    # A million rows are under `huge`: on a CPU an honest loop over rows takes half a minute for them.
    pinned=tuple(_case(f"shape={shape},seed=4") for shape in ("65535x8", "65536x8", "70000x33", "131073x3", "20000x1")),
)

LONG_ROWS = Property(
    "long-rows",
    "Rows of a million columns and more are right.",
    lambda domain, profile: strategies.long_rows(domain, profile.longest),
    _plain,
    pinned=tuple(
        _case(line)
        for line in (
            "shape=1x1048576,values=exact-mean",
            "shape=1x1048577,values=signed",
            "shape=2x1000003,values=integers",
            "shape=1x4194305,values=one-hot",
        )
    ),
    long=True,
)

VALUES = Property(
    "values",
    "Signed, heavy-tailed, mixed-scale, tiny and huge values, and rows that are all zero, give the reference's result.",
    lambda domain, _: strategies.cases(
        domain, (*strategies.GENERAL, *strategies.EXTREME, "zeros", "zero-rows"), elements=1 << 14
    ),
    _plain,
    pinned=tuple(
        _case(f"shape=7x33,dtype={dtype},values={values},seed=5")
        for dtype in ("float32", "float64", "float16", "bfloat16")
        for values in ("tiny", "huge", "near-max", "row-scales", "zeros", "zero-rows", "outlier")
    ),
)

SPECIALS = Property(
    "specials",
    "NaN makes its row NaN; an infinity is NaN in a row of zeros; a zero row is NaN; signs of zeros are kept.",
    lambda domain, _: strategies.planted(domain),
    _plain,
    pinned=tuple(
        _case(line)
        for line in (
            "shape=1x2,values=ones,plants=max@0",
            "shape=2x65535,values=signed,plants=nan@70000",
            "shape=2x65535,values=signed,plants=-inf@9",
            "shape=2x65535,values=zeros",
            "shape=2x40000,layout=offset1+step2,values=signed,plants=nan@70000",
            "shape=2x40000,layout=pitch3,values=signed,plants=inf@9",
            "shape=3x5x33,values=signed,plants=nan@7+inf@400",
            "shape=1x3,values=ones,plants=inf@1",
            "shape=3x5,values=ones,plants=nan@7",
            "shape=2x4,values=zeros",
            "shape=1x4,values=zeros,plants=sub@0",
            "shape=1x1024,dtype=float16,values=zeros,plants=sub@5",
            "shape=2x4,values=near-max",
            "shape=3x257,values=signed,plants=-0@3+0@300",
            "shape=2x3,values=ones,plants=-inf@0+inf@1",
            "shape=2x3,values=ones,plants=nan@0+inf@1",
        )
    ),
)

HUGE = Property(
    "huge",
    "A million rows, the shipped size, more than 2^31 elements, and a row of more than 2^30 columns are right.",
    None,
    _plain,
    pinned=tuple(
        _case(line)
        for line in (
            "shape=1048577x2,seed=4",
            "shape=32768x65535,values=positive,seed=13",
            "shape=32769x65537,dtype=float16,values=integers,seed=13",
            "shape=1x1073741825,dtype=float16,values=integers,seed=13",
        )
    ),
    targets=("cuda",),
)

EXACT_SUMS = Property(
    "exact-sums",
    "Where every partial sum is exact in any order, the mean is right to four roundoffs.",
    lambda domain, _: strategies.cases(domain, strategies.EXACT),
    _plain,
    pinned=tuple(
        _case(f"shape=3x{n},values={recipe},seed=6")
        for n in (1000, 10000, 65535)
        for recipe in ("integers", "one-full")
    ),
)

EVERY_BIT = Property(
    "every-bit",
    "Where columns and sum are powers of two, every bit of the result is right.",
    lambda domain, _: strategies.powers_of_two(domain),
    _plain,
    pinned=tuple(_case(f"shape=3x{n},values=exact-mean,seed=7") for n in (2, 256, 65536)),
)


# --- layouts ----------------------------------------------------------------------------------------------------------


LAYOUTS = Property(
    "layouts",
    "However the input lies in its storage, the result is that of its contiguous copy.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 15, layouts=True),
    _plain,
    pinned=tuple(
        _case(line)
        for line in (
            "shape=48x64,layout=order1.0,seed=8",
            "shape=48x64,layout=step2,seed=8",
            "shape=48x64,layout=offset10+pitch64,seed=8",
            "shape=6x1025,layout=pitch3,seed=8",
            "shape=2x65535,layout=offset1+step2,seed=8",
            "shape=3x65535,layout=pitch1,seed=8",
            "shape=3x5x4,dtype=bfloat16,layout=order2.0.1,seed=8",
            "shape=4x33,dtype=float16,layout=expand0,seed=8",
            "shape=6x1024,layout=offset1,seed=8",
            "shape=6x1024,layout=expand0,seed=8",
            "shape=6x1024,layout=expand1,seed=8",
            "shape=2x16x5x7,layout=order0.2.3.1,seed=8",
            *(f"shape=3x333,dtype=float16,layout=offset{k},seed=8" for k in range(1, 8)),
            *(
                f"shape=3x333,dtype={d},layout=offset{k},seed=8"
                for d, k in (("float32", 3), ("float64", 1), ("bfloat16", 5))
            ),
        )
    ),
)

# Reported of a candidate that was not asked for it: `torch.compile` itself ignores the bit that says "negated" (2.13),
# and so does every extension that takes a tensor's data without the dispatcher.
NEGATED = Property(
    "negated",
    "A lazily negated view gives the result of the negated values.",
    lambda domain, _: strategies.cases(
        Domain(domain.supported | {"negated"}), ("integers", "signed"), elements=1 << 14, layouts=True, negated=True
    ),
    _plain,
    pinned=(_case("shape=6x257,layout=negated,seed=8"),),
    promised="negated",
)


# --- invariances ------------------------------------------------------------------------------------------------------


def _scaled_by_two(trial: Trial, case: Case) -> None:
    plain = trial.build(case)
    first = trial.check(plain)
    factor = torch.tensor(2.0, dtype=torch.float64) ** case.turn
    second = trial.check(trial.place(case, (plain.logical.double() * factor).to(plain.logical.dtype)))
    comparisons.expect_same(trial, plain, first, second, f"its input is multiplied by 2^{case.turn}")


#: Powers of two that keep x, m, y and 1/m normal for the recipes used (float16's normal range is 2^-14 to 2^15).
_TURNS = {"fp32": 90, "fp64": 90, "bf16": 90, "fp16": 2}

SCALE_TWO = Property(
    "scale-by-two",
    "f(2^k x) = f(x), bit for bit.",
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
    _scaled_by_two,
    pinned=(_case("shape=3x257,seed=9,turn=-60"), _case("shape=3x257,seed=9,turn=60")),
    applies=lambda operator: operator.scale_invariant,
)


def _dtypes_but(name: str, domain: Domain) -> frozenset[str]:
    return frozenset({"fp32", "fp64", "bf16", "fp16"} & domain.supported) - {name}


def _scaled(trial: Trial, case: Case) -> None:
    plain = trial.build(case)
    trial.check(trial.place(case, plain.logical * _FACTORS[case.turn % len(_FACTORS)]))


#: Not powers of two: the product is rounded, and the oracle judges the rounded input.
_FACTORS = (3.0, -0.1, 1e3, 7e-4, 1.0000001, -12345.678)

SCALE_ANY = Property(
    "scale-by-any",
    "f(c x) is right for factors c that are no powers of two.",
    lambda domain, _: strategies.cases(
        domain, ("integers", "signed", "heavy"), elements=1 << 14, turns=st.integers(0, len(_FACTORS) - 1)
    ),
    _scaled,
    applies=lambda operator: operator.scale_invariant,
)


def _negated(trial: Trial, case: Case) -> None:
    plain = trial.build(case)
    first = trial.check(plain)
    second = trial.check(trial.place(case, -plain.logical))
    comparisons.expect_same(trial, plain, first, -second, "its input is negated (the signs of the result aside)")


ODD = Property(
    "odd",
    "f(-x) = -f(x).",
    lambda domain, _: strategies.cases(domain, (*strategies.GENERAL, *strategies.EXTREME), elements=1 << 14),
    _negated,
    applies=lambda operator: operator.odd,
)


def _isolated(trial: Trial, case: Case) -> None:
    plain = trial.build(case)
    first = trial.check(plain)
    rows, what = case.shape[0], strategies.PLANTABLE[case.turn % len(strategies.PLANTABLE)]
    row = case.turn // len(strategies.PLANTABLE) % rows
    spoilt = plain.logical.clone()
    spoilt[row] = values.special(what, FORMATS[case.dtype])
    second = trial.check(trial.place(case, spoilt))
    others = torch.arange(rows) != row
    comparisons.expect_same(trial, plain, first, second, f"another row ({row}) is filled with {what}", others)


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
    _isolated,
    pinned=(_case("shape=3x257,seed=10,turn=10"), _case("shape=3x33,seed=10,turn=12")),
)


# --- memory and histories ---------------------------------------------------------------------------------------------


def _history(trial: Trial, case: Case) -> None:
    """Two inputs at one address; the first result is looked at only after several calls on the second."""
    first = trial.build(case)
    second = trial.build(Case(case.shape, case.dtype, case.layout, case.values, case.seed + 1))
    runner = trial.subject.runner
    early = trial.observe(first, keep="early")
    if early.outcome is not Outcome.RETURNED:
        trial.verdict(first, early)
    for _ in range(max(_LATER_CALLS, case.turn) - 1):
        trial.observe(second)
    late = trial.observe(second)
    try:
        trial.verdict(second, late)
    except StopError:
        _explain_stale(trial, first, late.output)
        raise
    kept = runner.collect("early", first)
    runner.forget()
    said = judge.judge(first, kept, trial.subject.operator, trial.subject.required)
    if said.findings:
        trial.check(first)
        text = "an earlier result is no longer right after a later call"
        if kept.output is not None and trial.subject.operator.assess(second.logical, kept.output).fault is None:
            text = "an earlier result holds that of a later call: both lie in the same memory"
        trial.report(Finding(Kind.ALIASED_OUTPUT, text, said.findings[0].details))
    trial.check(first)


def _explain_stale(trial: Trial, first: Input, output: torch.Tensor | None) -> None:
    """Say so, if what came for the second input is right for the first."""
    if output is None or trial.subject.operator.assess(first.logical, output).fault is not None:
        return
    text = "gives the result of an earlier call, though other data lie at the same address"
    trial.findings[:] = [Finding(Kind.STALE_RESULT, text, trial.findings[-1].details)]


#: A candidate may hand out a few buffers in turn: an earlier result must outlive more calls than there are buffers.
#: A case's turn asks for more calls than these.
_LATER_CALLS = 9

HISTORY = Property(
    "history",
    "New data at an old address give a new result, and earlier results stay right after later calls.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 14, layouts=True),
    _history,
    pinned=(_case("shape=4x257,seed=11,turn=150"), _case("shape=64x1024,seed=11")),
)


def _repeated(trial: Trial, case: Case) -> None:
    given = trial.build(case)
    first = trial.check(given)
    for _ in range(3):
        again = trial.check(given)
        if not bool(comparisons.same_bits(first, again).all()):
            trial.report(Finding(Kind.NONDETERMINISTIC, "the same call on the same input gives other bits"))


REPEATED = Property(
    "determinism",
    "The same call gives the same bits.",
    lambda domain, _: strategies.cases(domain, ("signed", "heavy"), layouts=True),
    _repeated,
    pinned=(_case("shape=2000x1000,values=row-scales,seed=12"), _case("shape=1x262144,values=heavy,seed=12")),
    promised="determinism",
)


# --- interface --------------------------------------------------------------------------------------------------------


ERRORS = Property(
    "errors",
    "What cannot be normalised is refused with the documented error, and the next call is right.",
    lambda *_: st.builds(
        lambda shape, turn: Case(shape, turn=turn), strategies.matrices(64), st.integers(0, len(interface.REFUSALS) - 1)
    ),
    interface.refuses,
    pinned=tuple(Case((2, 3), turn=turn) for turn in range(len(interface.REFUSALS))),
    promised="errors",
)


CATALOGUE: dict[str, Property] = {
    prop.name: prop
    for prop in (
        SHAPES,
        VALUES,
        SPECIALS,
        EXACT_SUMS,
        EVERY_BIT,
        MANY_ROWS,
        LONG_ROWS,
        HUGE,
        LAYOUTS,
        NEGATED,
        SCALE_TWO,
        SCALE_ANY,
        ODD,
        ISOLATED,
        HISTORY,
        REPEATED,
        ERRORS,
    )
}
