"""What was drawn: each case counted by type, layout, rank, sizes and regime, so that a run shows what it looked at.

A class that is never drawn is a property that is not checked there. The regimes are those in which kernels take another
way: whether a row's elements are neighbours in memory, and how many bytes it has (registers of a warp, of a block, its
shared memory, that of a cluster, that of the whole card).
"""

from __future__ import annotations

from collections.abc import Iterator

from .cases import DTYPES, Case

#: Largest size of each class; what is larger than the last is "more".
_COLUMNS = (1, 31, 255, 4096, 1 << 17)
_ROWS = (1, 31, 1023, 65535)
_ROW_BYTES = ((512, "512 B"), (4 << 10, "4 KB"), (100 << 10, "100 KB"), (3584 << 10, "3.5 MB"))
_LAYOUTS = ("contiguous", "offset", "pitch", "step", "order", "cut", "expand", "lap", "negated")

#: Kinds of class, in the order in which they are shown, and the classes of each.
CLASSES: dict[str, tuple[str, ...]] = {
    "type": DTYPES,
    "layout": _LAYOUTS,
    "rank": ("2", "3", "4 and more"),
    "columns": (*(f"to {most}" for most in _COLUMNS), "more"),
    "rows": (*(f"to {most}" for most in _ROWS), "more"),
    "regime": (*(f"row to {words}" for _, words in _ROW_BYTES), "longer row", "columns apart", "empty"),
}


def classes(case: Case) -> Iterator[tuple[str, str]]:
    """Pairs of a kind and a class of `CLASSES`: one of each kind, and of layouts all that apply."""
    yield "type", case.dtype
    for name in layouts(case):
        yield "layout", name
    yield "rank", str(len(case.shape)) if len(case.shape) < 4 else "4 and more"
    yield "regime", regime(case)
    if case.numel:
        yield "columns", _class(case.columns, _COLUMNS)
        yield "rows", _class(case.rows, _ROWS)


def layouts(case: Case) -> list[str]:
    """What is unusual in how the input lies; "contiguous" where nothing is."""
    layout = case.layout
    shown = {
        "offset": layout.offset,
        "pitch": layout.pitch,
        "step": layout.step != 1,
        "order": layout.order,
        "cut": layout.cut,
        "expand": layout.expand,
        "lap": layout.lap,
        "negated": layout.negated,
    }
    return [name for name, there in shown.items() if there] or ["contiguous"]


def regime(case: Case) -> str:
    """Which of the ways of a kernel the case may take."""
    if case.numel == 0:
        return "empty"
    if not case.row_is_innermost or case.layout.step != 1 or case.layout.order or 1 in case.layout.expand:
        return "columns apart"
    nbytes = case.columns * (8 if case.dtype == "float64" else 4 if case.dtype == "float32" else 2)
    return next((f"row to {words}" for most, words in _ROW_BYTES if nbytes <= most), "longer row")


def _class(size: int, largest: tuple[int, ...]) -> str:
    return next((f"to {most}" for most in largest if size <= most), "more")
