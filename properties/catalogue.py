"""All properties: each one sentence, and the code that checks it. The tests and ``--case`` use this list.

What every single call is judged on (`judge`) is not repeated here: the contract on values, the input untouched with
everything around it, exactly a fresh ``torch.Tensor`` of the right shape, dtype and device.
"""

from __future__ import annotations

from hypothesis import strategies as st

from . import execution, histories, interface, invariances, memcheck, strategies
from .cases import Case
from .cases import parse as _case
from .engine import Property
from .strategies import Domain
from .trial import Trial


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
    )
    # Of so few columns the sum does not overflow, and means pass 2^126: their reciprocals are subnormal.
    + tuple(
        _case(f"shape=7x{n},dtype={dtype},values=huge,seed=5")
        for dtype in ("float32", "float64", "bfloat16")
        for n in (1, 2, 3)
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
            "shape=32769x65537,values=integers,seed=13",
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
            # Every start that an element can have between two multiples of 16 bytes.
            *(
                f"shape=3x333,dtype={dtype},layout=offset{k},seed=8"
                for dtype, most in (("float16", 8), ("bfloat16", 8), ("float32", 4), ("float64", 2))
                for k in range(1, most)
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
    invariances.scaled_by_two,
    pinned=(_case("shape=3x257,seed=9,turn=-60"), _case("shape=3x257,seed=9,turn=60")),
    applies=lambda operator: operator.scale_invariant,
)


def _dtypes_but(name: str, domain: Domain) -> frozenset[str]:
    return frozenset({"fp32", "fp64", "bf16", "fp16"} & domain.supported) - {name}


SCALE_ANY = Property(
    "scale-by-any",
    "f(c x) is right for factors c that are no powers of two.",
    lambda domain, _: strategies.cases(
        domain, ("integers", "signed", "heavy"), elements=1 << 14, turns=st.integers(0, len(invariances.FACTORS) - 1)
    ),
    invariances.scaled,
    applies=lambda operator: operator.scale_invariant,
)


ODD = Property(
    "odd",
    "f(-x) = -f(x).",
    lambda domain, _: strategies.cases(domain, (*strategies.GENERAL, *strategies.EXTREME), elements=1 << 14),
    invariances.negated,
    applies=lambda operator: operator.odd,
)


#: Values whose means, and whose results' means, are normal in every type.
_PLAIN = ("ones", "integers", "signed", "exact-mean", "constant", "one-hot")
_ANY_ORDER = st.integers(0, 1000)

ROW_ORDER = Property(
    "row-order",
    "Rows that change places take their results along, and a row alone has the result that it has among others.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, turns=_ANY_ORDER, empty=False),
    invariances.rows_in_other_order,
    pinned=(_case("shape=64x257,seed=17,turn=1"), _case("shape=7x33x5,seed=17,turn=2")),
)

COLUMN_ORDER = Property(
    "column-order",
    "Columns that change places take their results along.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, turns=_ANY_ORDER, empty=False),
    invariances.columns_in_other_order,
    pinned=(_case("shape=3x257,seed=18,turn=1"), _case("shape=2x65535,seed=18,turn=2")),
)

IDEMPOTENT = Property(
    "idempotence",
    "f(f(x)) = f(x).",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, empty=False),
    invariances.again,
    pinned=(_case("shape=3x257,seed=19"),),
    applies=lambda operator: operator.idempotent,
)

TOTAL = Property(
    "total",
    "The sizes of a row's results add up to the number of its columns.",
    lambda domain, _: strategies.cases(domain, _PLAIN, elements=1 << 14, empty=False),
    invariances.total,
    pinned=(
        _case("shape=3x257,seed=20"),
        _case("shape=3x257,values=constant,seed=20"),
        _case("shape=3x257,values=one-hot"),
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
    invariances.isolated,
    pinned=(_case("shape=3x257,seed=10,turn=10"), _case("shape=3x33,seed=10,turn=12")),
)


# --- memory and histories ---------------------------------------------------------------------------------------------


HISTORY = Property(
    "history",
    "New data at an old address give a new result, and earlier results stay right after later calls.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 14, layouts=True),
    histories.history,
    pinned=(_case("shape=4x257,seed=11,turn=150"), _case("shape=64x1024,seed=11")),
)


REPEATED = Property(
    "determinism",
    "The same call gives the same bits.",
    lambda domain, _: strategies.cases(domain, ("signed", "heavy"), layouts=True),
    histories.repeated,
    pinned=(
        _case("shape=2000x1000,values=row-scales,seed=12"),
        _case("shape=1x262144,values=heavy,seed=12"),
        # Shared scratch reused too early by a block's next row: neighbours differ by powers of ten, and many try.
        _case("shape=4000x1000,values=row-scales,seed=12,turn=20"),
    ),
    promised="determinism",
)


# --- execution on a GPU -----------------------------------------------------------------------------------------------


LATE = Property(
    "late-input",
    "The result is made of what the input holds once all work that is queued ahead of the call is done.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), layouts=True),
    execution.late,
    # Large enough that a copy of a result which is still being made is caught at it.
    pinned=(_case("shape=4x257,seed=14"), _case("shape=4096x4096,seed=14")),
    targets=("cuda",),
)

STREAM = Property(
    "stream",
    "The work is done on the stream that is current.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), layouts=True),
    execution.late_on_side_stream,
    pinned=(_case("shape=4x257,seed=14"), _case("shape=4096x4096,seed=14")),
    targets=("cuda",),
    promised="stream",
)

DEVICES = Property(
    "devices",
    "An input on the second GPU gives its result there, and leaves the first GPU current.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed"), layouts=True),
    execution.on_second_gpu,
    pinned=(_case("shape=4x257,seed=15"), _case("shape=2x65535,seed=15"), _case("shape=0x128")),
    targets=("cuda",),
    promised="devices",
)

MEMCHECK = Property(
    "memcheck",
    "No byte outside the input and the result is read or written (compute-sanitizer).",
    None,
    memcheck.fenced,
    pinned=(_case("shape=3x1023,seed=16"),),
    targets=("cuda",),
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
        ROW_ORDER,
        COLUMN_ORDER,
        IDEMPOTENT,
        TOTAL,
        HISTORY,
        REPEATED,
        LATE,
        STREAM,
        DEVICES,
        MEMCHECK,
        ERRORS,
    )
}
