"""The contract on values, over every shape, value and layout: one call, judged.

What every single call is judged on (`judge`) is not repeated here: the contract on values, the input untouched with
everything around it, exactly a fresh ``torch.Tensor`` of the right shape, dtype and device.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from . import strategies
from .cases import DTYPES, Case, parse
from .examination import Property, one_call
from .strategies import Domain

# --- values -----------------------------------------------------------------------------------------------------------


@st.composite
def _many_rows(draw: st.DrawFn, domain: Domain) -> Case:
    edges = [near for size in (1024, 4096, 16384, 32768, 65536) for near in (size - 1, size, size + 1)]
    rows = draw(st.sampled_from(edges) | st.integers(1000, 80000))
    length = draw(st.integers(1, 4) | st.integers(1, 33))
    recipe = draw(st.sampled_from(("integers", "signed", "row-scales", "zero-rows")))
    dtype = draw(st.sampled_from(domain.dtypes))
    return Case((rows, min(length, max(1, (1 << 18) // rows))), dtype, values=recipe, seed=draw(strategies.seeds()))


def _one_of_each_width() -> Iterator[str]:
    """One of every 64 numbers of columns up to 4096, and of every 128 up to 8192, with up to 300 rows.

    A band of wrong widths between those that are drawn most, such as 3001 to 3099, has a case in it. Sums are exact, so
    that one element that is left out is more than rounding may do.
    """
    for index, start in enumerate((*range(0, 4096, 64), *range(4096, 8192, 128))):
        columns = start + 1 + index * 37 % (64 if start < 4096 else 128)
        rows = 1 + index * 53 % min(300, (1 << 16) // columns)
        yield f"shape={rows}x{columns},values=grains,seed=5"


#: Rows, and columns as vocabularies and hidden layers have them.
_NETWORKS = (
    *((8, 11008), (8, 13824), (8, 14336), (5, 28672), (3, 30522), (4, 32000)),
    *((2, 49152), (3, 50257), (3, 50304), (2, 128256), (2, 151936), (2, 152064)),
    *((8, 5120), (8, 6144), (6, 6656), (6, 7168), (5, 7680), (4, 8960), (4, 10240), (4, 12800), (3, 18432), (3, 18944)),
    *((3, 20480), (3, 22016), (2, 27648), (2, 29568), (2, 36864), (2, 40960), (2, 53248)),
)

SHAPES = Property(
    "shapes",
    "On a contiguous input of any shape the result is the reference's.",
    lambda domain, _: strategies.cases(domain),
    one_call,
    pinned=tuple(
        parse(line)
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
            # Ranks beyond those that a kernel may have a fixed number of places for.
            "shape=2x5x1x3x2x2,seed=3",
            "shape=2x5x2x1x2x1x2x3,seed=3",
            "shape=2x3x1x2x1x2x1x2x1x2x1x2,seed=3",
            "shape=2x33x2x1x2x3,dtype=bfloat16,seed=3",
            "shape=0x128",
            "shape=4x0",
            "shape=0x0",
            "shape=4x65535,dtype=float16,values=ones",
            "shape=4x65535,dtype=bfloat16,values=ones",
            "shape=4x4095,dtype=float16,values=huge",
            # Rows of one value, in every way that there is: what is added one by one drifts, and each row otherwise.
            *(
                f"shape={shape},values=constant,seed=9"
                for shape in (
                    "64x1023",
                    "33x4099",
                    "9x65535",
                    "1x1048575",
                    "2x96x16",
                    "3x128x9",
                    "2x257x33",
                    "1x5000x17",
                    "150x100x15",
                    "150x700x3",
                    "16x4097,layout=order1.0",
                )
            ),
            # Whole tiles, batches and maps, as networks have them.
            *(f"shape={rows}x{n},seed=9" for rows, n in ((8, 2048), (16, 512), (32, 1024), (128, 256), (256, 256))),
            # Rows as long as vocabularies and hidden layers are.
            *(f"shape={rows}x{n},values=grains,seed=9" for rows, n in _NETWORKS),
            *(f"shape={shape},seed=9" for shape in ("256x384", "2x5x256", "4x128x768", "2x64x56x56", "1x3x112x112")),
            # Tokens of images, and volumes; wide and high, with both a whole number of tiles.
            *(
                f"shape={shape},seed=9"
                for shape in ("2x50x768", "2x197x768", "1x577x1024", "2x16x16x16x16", "2x5x5120")
            ),
            *(f"shape={shape},seed=9" for shape in ("512x768", "1024x256", "2048x512")),
            *_one_of_each_width(),
        )
    ),
)

MANY_ROWS = Property(
    "many-rows",
    "However many rows there are, every one of them is right, the last included.",
    lambda domain, _: _many_rows(domain),
    one_call,
    # A million rows are under `huge`: on a CPU an honest loop over rows takes half a minute for them.
    pinned=tuple(
        parse(f"shape={shape},seed=4")
        for shape in ("65535x8", "65536x8", "70000x33", "131073x3", "20000x1", "150001x16")
    ),
)

LONG_ROWS = Property(
    "long-rows",
    "Rows of a million columns and more are right, and so are a million elements in any other shape.",
    lambda domain, profile: strategies.long_rows(domain, profile.longest) | strategies.large(domain),
    one_call,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=1x1048576,values=exact-mean",
            "shape=1x1048577,values=signed",
            "shape=2x1000003,values=integers",
            # All but the last column is next to nothing; quotients beyond the type.
            "shape=1x4194305,values=one-tall,seed=1",
            "shape=1x131073,dtype=float16,values=one-hot",
            # Many rows that are long besides, and more of the dimensions behind a row than a grid has places.
            "shape=1100x4099,seed=30",
            # More than 2^24 elements: float32 does not count them any more.
            "shape=4099x4099,seed=30",
            # Double precision at such a size.
            "shape=70x65537,dtype=float64,seed=30",
            # Such sizes that are round in every direction.
            "shape=1024x1024,seed=30",
            "shape=1x64x112x112,seed=30",
            "shape=2048x2048,seed=30",
            # More 16-bit integers than have their sum in 32 bits.
            "shape=2x300001,values=samples,seed=30",
            "shape=2x3x224x224,seed=30",
            # As large in two bytes; maps of features, in both orders.
            "shape=131x32771,dtype=float16,seed=30",
            "shape=2x3x257x259,seed=30",
            "shape=3x65x56x57,dtype=bfloat16,layout=order0.2.3.1,seed=30",
            "shape=3x65x56x57,layout=order0.2.3.1,seed=30",
            "shape=1025x1025,layout=order1.0,seed=30",
            "shape=600x1031,dtype=float16,layout=offset1+pitch3,seed=30",
            "shape=1x3x65537,seed=30",
            "shape=65537x3x1,seed=30",
            "shape=2x8195x33,dtype=bfloat16,seed=30",
            # Both at once: rows of 256 KB, and more of them than a few; maps that are large in every direction.
            "shape=64x65535,values=row-scales,seed=30",
            "shape=8x512x28x28,seed=30",
            "shape=5x259x31x33,dtype=float16,layout=order0.2.3.1,seed=30",
            "shape=3x1031x523,layout=cut2.5,seed=30",
            # Sizes of a benchmark, on what it is given: with so many values a mean is known before it is taken.
            *(f"shape=64x65535,values={values},seed=30" for values in ("positive", "gaussian")),
            "shape=1024x4096,dtype=bfloat16,values=gaussian,seed=30",
            *(
                f"shape=70x5003,values={values},seed=30"
                for values in ("positive", "half", "levels", *strategies.LOOKALIKES)
            ),
            "shape=2x3x224x224,values=pixels,seed=30",
            "shape=1001x41x43,dtype=float16,seed=30",
            "shape=2300x2300,layout=order1.0,seed=30",
            "shape=8x64x72x72,layout=order0.2.3.1,seed=30",
            "shape=100003x5,layout=expand0,seed=30",
            # What is no ordinary value, where there are many.
            "shape=1100x301,values=zero-rows,seed=31",
            "shape=1100x301,values=signed,plants=nan@70000,seed=31",
            "shape=1100x301,values=signed,plants=-inf@70000,seed=31",
        )
    ),
    long=True,
)

VALUES = Property(
    "values",
    "Signed, heavy-tailed, mixed-scale, tiny and huge values, and rows that are all zero, give the reference's result.",
    lambda domain, _: strategies.cases(
        domain,
        (*strategies.GENERAL, *strategies.LOOKALIKES, *strategies.EXTREME, "zeros", "zero-rows"),
        elements=1 << 14,
    ),
    one_call,
    pinned=tuple(
        parse(f"shape=7x33,dtype={dtype},values={values},seed=5")
        for dtype in DTYPES
        for values in ("tiny", "huge", "near-max", "row-scales", "any-scale", "zeros", "zero-rows", "outlier")
    )
    + tuple(
        parse(f"shape=9x161,dtype={dtype},values={values},seed=5")
        for dtype in DTYPES
        for values in ("padded", "padded-before", "half", "sorted")
    )
    + tuple(
        parse(f"shape=5x1031,dtype={dtype},values={values},seed=5")
        for dtype in DTYPES
        for values in (*strategies.GENERAL, *strategies.LOOKALIKES)
    )
    # As many rows as columns, and few digits: what looks like something does so here alone.
    + tuple(parse(f"shape=64x64,values={values},seed=5") for values in strategies.LOOKALIKES)
    + tuple(
        parse(f"shape={shape},dtype={dtype},values=alternating,seed=5")
        for dtype in DTYPES
        for shape in ("5x2", "5x64", "3x1031", "2x65x3")
    )
    # Of so few columns the sum does not overflow, and means pass 2^126: their reciprocals are subnormal.
    + tuple(
        parse(f"shape=7x{n},dtype={dtype},values=huge,seed=5")
        for dtype in ("float32", "float64", "bfloat16")
        for n in (1, 2, 3)
    ),
)

SPECIALS = Property(
    "specials",
    "NaN makes its row NaN; an infinity is NaN in a row of zeros; a zero row is NaN; signs of zeros are kept.",
    lambda domain, _: strategies.planted(domain),
    one_call,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=1x2,values=ones,plants=max@0",
            "shape=2x65535,values=signed,plants=nan@70000",
            "shape=2x65535,values=signed,plants=-inf@9",
            "shape=2x65535,values=zeros",
            "shape=1x65537,values=masked",  # of which 2^16 are minus infinity
            "shape=2x40000,layout=offset1+step2,values=signed,plants=nan@70000",
            "shape=2x40000,layout=pitch3,values=signed,plants=inf@9",
            "shape=3x5x33,values=signed,plants=nan@7+inf@400",
            "shape=1x3,values=ones,plants=inf@1",
            "shape=3x5,values=ones,plants=nan@7",
            # A mask.
            "shape=2x65,values=signed,plants=" + "+".join(f"-inf@{place}" for place in range(40, 60)) + ",seed=9",
            "shape=128x128,values=masked,seed=9",
            "shape=70x33,dtype=bfloat16,values=masked,seed=9",
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
    "A million rows, 70 MB of rows of 1 KB, the shipped size, more than 2^32 elements, a row of 2^31 columns and rows"
    " 2^31 apart are right.",
    None,
    one_call,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=1048577x2,seed=4",
            "shape=1x3x1080x1920,seed=4",
            # Short rows that fill no cache any more may be read otherwise than a few.
            "shape=70001x255,layout=offset1,seed=13",
            "shape=40001x1023,dtype=bfloat16,seed=13",
            "shape=32768x65535,values=positive,seed=13",
            "shape=32769x65537,values=integers,seed=13",
            "shape=32769x65537,dtype=float16,values=integers,seed=13",
            "shape=65537x65537,dtype=float16,values=integers,seed=13",
            "shape=1x1073741825,dtype=float16,values=integers,seed=13",
            "shape=1x2147483649,dtype=float16,values=integers,seed=13",
            "shape=3x65,dtype=float16,layout=pitch2147483584,seed=13",
        )
    ),
    targets=("cuda",),
)

EXACT_SUMS = Property(
    "exact-sums",
    "Where every partial sum is exact in any order, the mean is right to four roundoffs.",
    lambda domain, _: strategies.cases(domain, strategies.EXACT),
    one_call,
    pinned=tuple(
        parse(f"shape=3x{n},values={recipe},seed=6")
        for n in (1000, 10000, 65535)
        for recipe in ("integers", "one-full", "grains", "one-tall")
    )
    # Of 16 bits a mean is not asked for more than those: what is left out must be large.
    + tuple(
        parse(f"shape={shape},dtype={dtype},values={recipe},seed=6")
        for shape, recipe in (("9x4103", "one-tall"), ("130x4103", "sparse"), ("5x65535", "one-tall"))
        for dtype in ("float16", "bfloat16")
    ),
)

EVERY_BIT = Property(
    "every-bit",
    "Where columns and sum are powers of two, every bit of the result is right.",
    lambda domain, _: strategies.powers_of_two(domain),
    one_call,
    pinned=tuple(parse(f"shape=3x{n},values=exact-mean,seed=7") for n in (2, 256, 65536)),
)


# --- layouts ----------------------------------------------------------------------------------------------------------


LAYOUTS = Property(
    "layouts",
    "However the input lies in its storage, the result is that of its contiguous copy.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 15, layouts=True),
    one_call,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=48x64,layout=order1.0,seed=8",
            "shape=48x64,layout=step2,seed=8",
            "shape=48x64,layout=cut0.3,seed=8",
            "shape=48x64,layout=offset10+pitch64,seed=8",
            # Rows from the middle of a batch; one of three that lie side by side; every seventeenth.
            "shape=8x128,layout=offset1024,seed=8",
            "shape=48x64,layout=pitch128,seed=8",
            "shape=48x64,layout=offset128+pitch128,seed=8",
            "shape=48x64,layout=pitch192,seed=8",
            "shape=40x65,layout=step17,seed=8",
            "shape=6x257,layout=offset1048577,seed=8",
            # From far within a table, and part of its columns: both round.
            *(f"shape=6x257,layout=offset{offset},seed=8" for offset in (65536, 640000, 1048576)),
            "shape=8x64,layout=pitch400000,seed=8",
            # A place that float32 does not hold.
            "shape=5x65,layout=offset16777217,seed=8",
            "shape=2x5x2x1x2x3,dtype=float16,layout=order1.0.5.2.4.3,seed=8",
            "shape=3x65x2x1x2x3,layout=offset3+pitch2,seed=8",
            "shape=6x1025,layout=pitch3,seed=8",
            "shape=2x65535,layout=offset1+step2,seed=8",
            "shape=3x65535,layout=pitch1,seed=8",
            "shape=3x5x4,dtype=bfloat16,layout=order2.0.1,seed=8",
            "shape=4x33,dtype=float16,layout=expand0,seed=8",
            # One behind the other: a choice that was made for one alignment must not be kept for another.
            "shape=6x1024,seed=8",
            "shape=6x1024,layout=offset1,seed=8",
            "shape=6x1024,layout=expand0,seed=8",
            "shape=6x1024,layout=expand1,seed=8",
            "shape=6x64,layout=expand0+expand1,seed=8",
            "shape=6x64,layout=expand0+step2,seed=8",
            "shape=3x33x4,layout=expand0+expand2+offset1,seed=8",
            # Long sums in the types that keep few digits, where rows repeat each other.
            *(
                f"shape={shape},dtype={dtype},layout={layout},values=positive,seed=3"
                for dtype in ("float16", "bfloat16")
                for shape, layout in (("3x4097x4", "expand2"), ("3x4097x4", "order0.2.1"), ("5x4097", "expand0"))
            ),
            # In every type: columns that lie apart, few and many; channels last.
            *(
                f"shape={shape},dtype={dtype},seed=8"
                for dtype in DTYPES
                for shape in ("96x2049,layout=order1.0", "3x4097,layout=order1.0", "2x16x5x7,layout=order0.2.3.1")
            ),
            # What is at the ends of columns that lie apart, for types that keep few digits.
            *(
                f"shape={shape},dtype={dtype},values=one-tall,seed=8"
                for dtype in ("float16", "bfloat16")
                for shape in ("67x1027,layout=order1.0", "5x1031x7", "3x16x5x7,layout=order0.2.3.1", "2x9001x3")
            ),
            "shape=2x6x3x4x5,layout=order0.2.3.4.1,seed=8",
            # Part of what lies there, in every direction; windows that slide.
            *(f"shape=3x33x4,layout=cut{dim}.3,seed=8" for dim in range(3)),
            "shape=2x6x5x7,layout=cut2.2,seed=8",
            "shape=40x64,layout=lap1,seed=8",
            "shape=5x33x4,layout=offset1+lap8,seed=8",
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
    one_call,
    pinned=(parse("shape=6x257,layout=negated,seed=8"),),
    promised="negated",
)
