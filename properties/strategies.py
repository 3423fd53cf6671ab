"""Hypothesis strategies that draw cases: edges by name, ranges beside them, and never more memory than is meant.

Columns come from named edges (one, vector widths, warps, blocks, slices: each with its neighbours) and from ranges, so
that a fault at "not a multiple of 256" is drawn within a few examples. Strategies shrink towards few, short, contiguous
float32 rows of ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from .cases import DTYPE_FEATURES, DTYPES, Case
from .layouts import CONTIGUOUS, Layout
from .values import Plant


def _around(*sizes: int) -> list[int]:
    return sorted({near for size in sizes for near in (size - 1, size, size + 1) if near > 0})


#: Lengths at which kernels change their way: vector (2, 4, 8, 16), warp 32, block 64 to 1024, a 48 KiB and a 100 KiB
#: shared-memory row of float32 (12288, 25600), the shipped 65535, each with both neighbours.
EDGES = _around(1, 2, 4, 8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048, 4096, 12288, 25600, 65535)
#: Elements of an ordinary drawn case: 2^17 float64 are 1 MiB, judged in about 10 ms.
ORDINARY = 1 << 17
#: General values: everything that keeps a row's sum finite and normal.
GENERAL = (
    "ones",
    "integers",
    "signed",
    "positive",
    "heavy",
    "mixed",
    "row-scales",
    "constant",
    "outlier",
    "sparse",
    "padded",
    "padded-before",
    "half",
    "sorted",
    "nearly-constant",
    "levels",
    "shares",
)
#: Values that look like what a network has at hand, beside those that are general.
LOOKALIKES = (
    "gaussian",
    "activations",
    "mostly-positive",
    "negative",
    "nearly-alike",
    "unit-norm",
    "drifting",
    "falling",
    "coarse",
    "triangle",
    "dead-columns",
    "bias",
    "pixels",
    "samples",
    "alike-at-the-ends",
    "pruned",
    "real-parts",
    "positions",
    "diagonal",
    "bits",
    "timestamps",
)
#: Values at the ends of the type's range, and up to them.
EXTREME = ("tiny", "huge", "near-max", "any-scale")
#: General values are judged up to this many columns: the bound gamma(n + 1) says too little beyond.
GENERAL_COLUMNS = 1 << 20
#: Recipes whose sums are exact in any order at any length.
EXACT = ("integers", "exact-mean", "one-hot", "one-full", "one-tall", "grains")
PLANTABLE = ("nan", "inf", "-inf", "0", "-0", "max", "-max", "sub", "-sub", "normal")


@dataclass(frozen=True)
class Domain:
    """What a candidate supports, as probed: names of `cases.FEATURES`."""

    supported: frozenset[str]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Supported dtypes, float32 first."""
        return tuple(name for name in DTYPES if DTYPE_FEATURES[name] in self.supported)


def seeds() -> SearchStrategy[int]:
    """Seeds of the integer hash."""
    return st.integers(0, 2**20)


def columns(most: int = ORDINARY) -> SearchStrategy[int]:
    """Row lengths from 1 to ``most``: an edge, a short row, or anything."""
    edges = [size for size in EDGES if size <= most]
    return st.sampled_from(edges) | st.integers(1, min(most, 300)) | st.integers(1, most) | _of_any_size(1, most)


def _of_any_size(least: int, most: int) -> SearchStrategy[int]:
    """Integers of which as many lie between 100 and 200 as between 10000 and 20000."""
    sizes = range(least.bit_length() - 1, most.bit_length())
    return st.one_of([st.integers(max(least, 1 << size), min(most, (2 << size) - 1)) for size in sizes])


@st.composite
def matrices(draw: st.DrawFn, elements: int = ORDINARY, least_rows: int = 1) -> tuple[int, ...]:
    """2-D shapes of at most ``elements`` elements, most with few rows."""
    length = draw(columns(elements // least_rows))
    most_rows = max(elements // length, least_rows)
    rows = draw(st.integers(least_rows, min(most_rows, least_rows + 4)) | st.integers(least_rows, most_rows))
    return (rows, length)


@st.composite
def shapes(draw: st.DrawFn, domain: Domain, elements: int = ORDINARY) -> tuple[int, ...]:
    """Shapes of the domain: matrices, and where supported higher ranks (dimension 1 is the row) and empty ones."""
    kinds = ["matrix", "matrix", "matrix"]
    kinds += ["nd"] if "nd" in domain.supported else []
    kinds += ["empty"] if "empty" in domain.supported else []
    kinds += ["square", "round"]
    kind = draw(st.sampled_from(kinds))
    if kind == "matrix":
        return draw(matrices(elements))
    if kind == "square":  # its dimensions can be told apart by nothing but their places
        rank = draw(st.sampled_from((2, 3, 3, 4))) if "nd" in domain.supported else 2
        side = draw(_of_any_size(2, int(elements ** (1 / rank))))
        batch = draw(st.just(side) | st.integers(1, 4)) if rank > 2 else side
        return (batch, *(side,) * (rank - 1))
    if kind == "round":
        return draw(_round_shapes(elements, "nd" in domain.supported))
    if kind == "empty":
        most_rank = 4 if "nd" in domain.supported else 2
        sizes = draw(st.lists(st.integers(0, 5), min_size=2, max_size=most_rank))
        sizes[draw(st.integers(0, len(sizes) - 1))] = 0
        return tuple(sizes)
    length = draw(columns(elements // 8))
    room = elements // length
    tails = st.sampled_from((31, 32, 33, 63, 64, 65, 70))
    most_inner = draw(st.sampled_from((3, 3, 3, 6)))
    inner = draw(st.lists(st.integers(1, 9) | tails, min_size=1, max_size=most_inner))
    while _product(inner) > room:
        inner[inner.index(max(inner))] = 1
    most_outer = max(1, room // _product(inner))
    outer = draw(st.integers(1, min(5, most_outer)) | st.integers(1, min(70, most_outer)))
    return (outer, length, *inner)


@st.composite
def _round_shapes(draw: st.DrawFn, elements: int, any_rank: bool) -> tuple[int, ...]:
    """Shapes that networks have: few batches of 2^k columns, or 3 to 15 * 2^k, and maps as wide as they are high."""
    rank = draw(st.integers(2, 4)) if any_rank else 2
    batch = 1 << draw(st.integers(0, 7))
    length, side = (draw(st.sampled_from((1, 1, 1, 3, 5, 7, 9, 15))) << draw(st.integers(0, 10)) for _ in range(2))
    sizes = [batch, length, side, side][:rank]
    while _product(sizes) > elements:
        largest = max(range(rank), key=sizes.__getitem__)
        sizes[largest] = max(sizes[largest] // 2, 1)
        sizes[-1] = sizes[2] if rank == 4 else sizes[-1]
    return tuple(sizes)


@st.composite
def arrangements(draw: st.DrawFn, domain: Domain, shape: tuple[int, ...], *, negated: bool = False) -> Layout:
    """A layout that the domain supports, contiguous among them; a lazily negated view of it if ``negated``."""
    kinds = ["contiguous", "cut"]
    kinds += ["offset"] if "offset" in domain.supported else []
    kinds += ["pitch", "step", "order", "order", "slice"] if "strided" in domain.supported else []
    kinds += ["expand"] if "expanded" in domain.supported else []
    kinds += ["lap"] if {"strided", "expanded"} <= domain.supported else []
    kind = draw(st.sampled_from(kinds))
    offset = draw(st.integers(1, 17)) if "offset" in domain.supported and draw(st.booleans()) else 0
    elements = max(_product(list(shape)), 1)
    small = st.integers(1, 40) | _within(elements // max(shape[-1], 1))
    if kind == "offset":
        return Layout(offset=draw(st.integers(1, 65) | _within(1)), negated=negated)
    if kind == "pitch":
        return Layout(offset=offset, pitch=draw(small), negated=negated)
    if kind == "cut":
        dimension = draw(st.integers(0, len(shape) - 1)) if "strided" in domain.supported else 0
        more = st.integers(1, 3) | _within(elements // max(shape[dimension], 1))
        return Layout(offset=offset, cut=(dimension, draw(more)), negated=negated)
    if kind == "lap":
        return Layout(offset=offset, lap=draw(st.integers(1, 9)), negated=negated)
    if kind == "step":
        return Layout(offset=offset, step=draw(st.integers(2, 5) | _within(elements, 2)), negated=negated)
    if kind == "slice":
        return Layout(offset=offset, pitch=draw(small), step=draw(st.integers(2, 3)), negated=negated)
    if kind == "order":
        order = tuple(draw(st.permutations(range(len(shape))).filter(lambda order: list(order) != sorted(order))))
        return Layout(offset=offset, order=order, pitch=draw(st.just(0) | st.integers(1, 40)), negated=negated)
    if kind == "expand":
        dims = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
        step = draw(st.integers(1, 3)) if "strided" in domain.supported else 1
        return Layout(offset=offset, step=step, expand=dims, negated=negated)
    return Layout(negated=negated)


def _within(times: int, least: int = 1) -> SearchStrategy[int]:
    """Lengths of gaps, of any size, of which so many take no more room than `ORDINARY` elements; or a few."""
    return _of_any_size(least, max(ORDINARY // max(times, 1), least + 1))


@st.composite
def cases(
    draw: st.DrawFn,
    domain: Domain,
    recipes: tuple[str, ...] = GENERAL,
    *,
    elements: int = ORDINARY,
    layouts: bool = False,
    negated: bool = False,
    turns: SearchStrategy[int] | None = None,
    empty: bool = True,
) -> Case:
    """Cases of any shape of the domain with one of ``recipes``; any layout if ``layouts``, negated if ``negated``.

    Args:
        draw: Hypothesis's.
        domain: what may be drawn.
        recipes: of values.
        elements: most of them.
        layouts: whether the input may lie in any way; contiguous otherwise.
        negated: whether it is a lazily negated view.
        turns: strategy of the case's turn; 0 where there is none.
        empty: whether shapes with a zero are among them.
    """
    dtype = draw(st.sampled_from(domain.dtypes))
    shape = draw(shapes(domain if empty else Domain(domain.supported - {"empty"}), elements))
    layout = draw(arrangements(domain, shape, negated=negated)) if layouts else CONTIGUOUS
    recipe = draw(st.sampled_from(recipes))
    turn = draw(turns) if turns is not None else 0
    return Case(shape, dtype, layout, recipe, draw(seeds()), (), turn)


def _few_plants(shape: tuple[int, ...], what: tuple[str, ...]) -> SearchStrategy[list[Plant]]:
    """One to four special values, each at a place of its own."""
    plant = st.builds(Plant, st.sampled_from(what), st.integers(0, _product(list(shape)) - 1))
    return st.lists(plant, min_size=1, max_size=4, unique_by=lambda each: each.index)


@st.composite
def planted(draw: st.DrawFn, domain: Domain, what: tuple[str, ...] = PLANTABLE, least_rows: int = 1) -> Case:
    """Small inputs with one to four special values put somewhere: matrices mostly, then any rank and layout.

    One in eight has up to 24 of one kind in its first row, as a mask puts them.
    """
    dtype = draw(st.sampled_from(domain.dtypes))
    shape, layout = draw(matrices(1 << 14, least_rows)), CONTIGUOUS
    if draw(st.integers(0, 2)) == 2:
        shape = draw(shapes(domain, 1 << 12).filter(all))
        layout = draw(arrangements(domain, shape))
    plants = draw(_few_plants(shape, what))
    if draw(st.integers(0, 7)) == 7 and len(shape) == 2:
        masked = draw(st.sampled_from(what))
        places = draw(st.lists(st.integers(0, shape[1] - 1), min_size=1, max_size=24, unique=True))
        plants = [Plant(masked, place) for place in places]
    recipe = draw(st.sampled_from(("ones", "integers", "signed", "zero-rows", "tiny", "masked")))
    return Case(shape, dtype, layout, recipe, draw(seeds()), tuple(sorted(plants)))


@st.composite
def long_rows(draw: st.DrawFn, domain: Domain, most: int) -> Case:
    """Few rows of up to ``most`` columns; above `GENERAL_COLUMNS` the recipes are those whose sums are exact."""
    dtype = draw(st.sampled_from(domain.dtypes))
    length = draw(
        st.integers(1 << 16, most) | st.sampled_from([s for s in _around(1 << 17, 1 << 20, 1 << 21) if s <= most])
    )
    rows = draw(st.integers(1, max(1, min(3, most // length))))
    general = ("signed", "heavy", "sparse", "any-scale") if length <= GENERAL_COLUMNS else ()
    recipe = draw(st.sampled_from((*EXACT, *general)))
    return Case((rows, length), dtype, CONTIGUOUS, recipe, draw(seeds()))


@st.composite
def large(draw: st.DrawFn, domain: Domain, most: int = 1 << 20) -> Case:
    """Up to ``most`` elements, many of them both along a row and across: what is small in one direction is no work.

    One in three has zero rows, or one to four special values somewhere: large tensors go ways of their own.
    """
    dtype = draw(st.sampled_from(domain.dtypes))
    plain = draw(st.booleans())
    elements = draw(st.integers(ORDINARY, most if plain else most >> 2))  # gaps take up to twenty times the room
    length = draw(_of_any_size(8, elements >> 5))
    rows = elements // length
    shape: tuple[int, ...] = (rows, length)
    if "nd" in domain.supported and draw(st.booleans()):
        outer = draw(_of_any_size(1, rows))
        inner = rows // outer
        height = draw(_of_any_size(1, inner))
        shape = (outer, length, inner) if draw(st.booleans()) else (outer, length, height, inner // height)
    layout = CONTIGUOUS if plain else draw(arrangements(domain, shape))
    recipe = draw(
        st.sampled_from((*EXACT, "signed", "row-scales", "any-scale")) | st.sampled_from(("positive", *LOOKALIKES))
    )
    plants: list[Plant] = []
    match draw(st.integers(0, 5)):
        case 5:
            recipe = "zero-rows"
        case 4:
            plants = draw(_few_plants(shape, PLANTABLE))
            recipe = "signed"
    return Case(shape, dtype, layout, recipe, draw(seeds()), tuple(sorted(plants)))


@st.composite
def powers_of_two(draw: st.DrawFn, domain: Domain) -> Case:
    """Rows of 2^k columns whose sums are powers of two: every bit of the result is known."""
    dtype = draw(st.sampled_from(domain.dtypes))
    length = 1 << draw(st.integers(0, 17))
    rows = draw(st.integers(1, max(1, min(9, ORDINARY // length))))
    recipe = draw(st.sampled_from(("ones", "exact-mean", "one-hot")))
    return Case((rows, length), dtype, CONTIGUOUS, recipe, draw(seeds()))


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
