"""What is timed: shapes with their reason, and the goal of the shipped kernel at each, as a ratio of times of one run.

Goals are shown beside the figures and reject nothing by themselves: a single run on a busy machine misses one now and
then. The largest inputs come first, so that memory is taken once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .cases import Case, parse
from .strategies import GENERAL_COLUMNS


@dataclass(frozen=True)
class Entry:
    """One case, and its goal: that ``figure`` (a name of `timing.figures`) is at least ``least``; "" without a goal."""

    case: Case
    figure: str = ""
    least: float = 0.0

    @property
    def goal_text(self) -> str:
        """For a table."""
        return f"{self.figure} >= {self.least:g}" if self.figure else ""

    def met(self, figures: Mapping[str, float]) -> bool | None:
        """Whether the goal is met; None without a goal, or where its peer was not timed."""
        return figures[self.figure] >= self.least if self.figure in figures else None


def entries(target: str) -> tuple[Entry, ...]:
    """All cases of a target."""
    return {"cpu": _CPU, "cuda": _CUDA}[target]


def _of(shape: str, figure: str = "", least: float = 0.0, dtype: str = "float32", layout: str = "contiguous") -> Entry:
    columns = int(shape.split("x")[1])
    recipe = "integers" if columns > GENERAL_COLUMNS else "signed"
    return Entry(parse(f"shape={shape},dtype={dtype},layout={layout},values={recipe},seed=1"), figure, least)


#: 64 MiB where the reason needs no more: beyond every cache, and quick.
_CPU = (
    _of("4096x65535", "vs_eager", 1.8),  # the shipped row length; the goal of the kernel for CPU tensors
    *(_of("4096x4096", dtype=dtype) for dtype in ("float32", "float64", "float16", "bfloat16")),
    _of("65536x255"),  # short rows, no multiple of a vector
    _of("262144x63"),  # shorter still: the cost of a row shows
    _of("1x8388608"),  # one row: only a sum that is split up keeps all cores busy
    _of("16x65535"),  # fits a cache
    _of("4096x4095", layout="order1.0"),  # a transposed view: columns lie apart
)

_COPY_SPEED = (
    ("32768x65535", 0.95),  # the shipped size: odd rows
    ("32768x65536", 0.97),  # the same with aligned rows
    ("16384x16384", 0.97),
    ("16384x16383", 0.97),
    ("65536x4096", 0.97),
    ("65536x4095", 0.97),
)
_CUDA = (
    *(_of(shape, "of_copy", least, dtype) for dtype in ("float32", "bfloat16") for shape, least in _COPY_SPEED[:2]),
    *(
        _of(shape, "of_copy", least)
        for shape, least in (
            ("4096x262144", 0.93),  # a row is one MiB
            ("4096x262143", 0.93),
            ("1024x849999", 0.85),  # a row no longer fits the registers and shared memory of a cluster
            ("512x1048577", 0.85),
            ("64x8388608", 0.80),  # a row takes the whole chip
            ("63x8388607", 0.80),
        )
    ),
    *(_of(shape, "of_copy", least, dtype) for dtype in ("float32", "bfloat16") for shape, least in _COPY_SPEED[2:]),
    *(
        _of(shape, "of_copy", 0.95)
        for shape in ("262144x1023", "1048576x255", "4194304x64", "11184810x24", "33554432x8", "89478485x3")
    ),
    _of("65536x8192", dtype="bfloat16"),
    _of("1x268435456", "of_copy", 0.66),  # fits nowhere: it is read twice and written once, so 0.667 is the floor
    _of("128x1048577"),
    _of("1024x65535"),
    _of("64x1000x33x35", "of_copy", 0.80),  # the columns are not innermost
    _of("4096x4096", "of_copy", 0.80, layout="order1.0"),
    *(_of("512x3x224x224", "of_copy", 0.90, dtype) for dtype in ("float32", "bfloat16")),  # images: three columns
    _of("16x65535", "of_copy", 1 / 1.4),  # short: replayed from a graph, over inputs that exceed the cache
    _of("128x1024", "of_copy", 1 / 1.4),
    _of("1x65535", "of_copy", 1 / 2),  # two steps over the whole chip against one
)
