"""Draws the plots of a page as SVG to be put into HTML, with matplotlib.

Promise: text stays text, colours are the page's own variables (so that a plot follows light and dark), series differ in
their markers as well, every drawing has a name and a description for those who do not see it, and the same data give
the same bytes. This module is imported only where matplotlib is.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ci.page_facts import PEERS, Timing

# Colours that stand for the page's variables until the drawing is made; each is one that nothing else has.
_VARIABLES = {
    "#010101": "ink",
    "#020202": "soft",
    "#030303": "one",
    "#040404": "two",
    "#050505": "three",
    "#060606": "four",
    "#070707": "five",
    "#080808": "six",
}
_INK, _SOFT, *_SERIES = _VARIABLES
# Each kind of point has its colour and its marker in every plot, so that a print in one colour can be read.
_MARKERS = ("o", "s", "v", "P", "^", "D")
_KINDS = ("float32", "bfloat16", "float16", "float64", *PEERS)
# Inches of 72 points. A phone of 400 pixels shows the wide one at about a pixel a point, and the small one, of which a
# desk's screen shows four side by side, larger.
_WIDE, _SMALL = (5.2, 4.4), (3.2, 1.5)
_WIDE_TEXT, _SMALL_TEXT = 10.5, 9.0
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kernelproof",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _SOFT,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _SOFT,
}
# Fractions of a copy above this would be drawn outside; a kernel that stays in a cache may be there.
_LEAST_TOP = 1.1
# Labels beside each other along the rows' length.
_MOST_TICKS = 8
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes:
        name: For the legend.
        kind: The dtype of the candidate's, which are drawn full, or the name of a peer, whose are hollow.
        row_bytes: Lengths of rows.
        of_copy: Fractions of a copy.
    """

    name: str
    kind: str
    row_bytes: tuple[int, ...]
    of_copy: tuple[float, ...]


def roofline(series: Sequence[Series], name: str, title: str, words: str) -> str:
    """Fraction of a copy against the length of a row, one marker a series.

    Args:
        series: What is drawn.
        name: Makes the drawing's ids its own in the page.
        title: Of the drawing.
        words: What it shows, for those who do not see it.
    """
    with mpl.rc_context({**_SETTINGS, "font.size": _WIDE_TEXT}):
        figure = Figure(figsize=_WIDE, layout="constrained")
        axes = figure.add_subplot()
        axes.set_xscale("log", base=2)
        lengths = [length for each in series for length in each.row_bytes]
        ends = (min(lengths) / 2, max(lengths) * 2)
        axes.set_xticks(*_ticks(*ends))
        axes.minorticks_off()
        axes.set_xlim(ends)
        _limit(axes, [value for each in series for value in each.of_copy])
        axes.grid(visible=True, linewidth=0.4, alpha=0.5)
        axes.set_xlabel("bytes of a row")
        axes.set_ylabel("fraction of a copy's speed")
        for each in series:
            colour, marker = _SERIES[_KINDS.index(each.kind)], _MARKERS[_KINDS.index(each.kind)]
            inside = "none" if each.kind in PEERS else colour
            axes.plot(
                each.row_bytes,
                each.of_copy,
                marker,
                color=colour,
                markerfacecolor=inside,
                markersize=6,
                label=each.name,
            )
        axes.axhline(1.0, color=_INK, linewidth=1.2, linestyle="--", label="a copy of the same bytes")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        return _svg(figure, name, title, words)


def history(values: Sequence[float], name: str, title: str, words: str) -> str:
    """Fractions of a copy, run after run."""
    with mpl.rc_context({**_SETTINGS, "font.size": _SMALL_TEXT}):
        figure = Figure(figsize=_SMALL, layout="constrained")
        axes = figure.add_subplot()
        _limit(axes, values)
        axes.set_xlim(-0.4, len(values) - 0.4)
        axes.set_xticks([])
        axes.set_yticks([0, 0.5, 1])
        axes.axhline(1.0, color=_INK, linewidth=1, linestyle="--")
        axes.plot(range(len(values)), values, color=_SERIES[0], marker=_MARKERS[0], markersize=4, linewidth=1.5)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        return _svg(figure, name, title, words)


def _limit(axes: Axes, values: Sequence[float]) -> None:
    axes.set_ylim(0, max(_LEAST_TOP, *(1.05 * value for value in values)))


def _ticks(least: float, most: float) -> tuple[list[int], list[str]]:
    """Powers of 2, or of 4, or of 16 and so on where the range is long, between two lengths."""
    for factor in (2, 4, 16, 64):
        ticks = [factor**power for power in range(64) if least <= factor**power <= most]
        if len(ticks) <= _MOST_TICKS:
            break
    return ticks, [size(tick) for tick in ticks]


def size(count: int) -> str:
    """Bytes for a person."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"


def _svg(figure: Figure, name: str, title: str, words: str) -> str:
    """The drawing, to stand in HTML beside others."""
    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :]
    opening, rest = text.split(">", 1)
    box = re.search(r'viewBox="[^"]+"', opening)
    assert box is not None, "matplotlib names the size of its drawing"
    # Ids, and what refers to them, become the drawing's own.
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'(href="|url\()#', rf"\1#{name}-", rest)
    rest = rest.replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        rest = rest.replace(colour, f"var(--{variable})")
    # The page's font stands in for the one that the text was measured with.
    rest = re.sub(r"(font: [\d.]+px) [^;\"]+", r"\1 var(--font)", rest)
    named = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-words">{escape(words)}</desc>'
    return f'<svg {box[0]} role="img" aria-labelledby="{name}-title {name}-words">{named}{rest.strip()}'


class Plots:
    """Draws for one page; each drawing's ids are its own."""

    def __init__(self) -> None:
        self._drawn = 0

    def roofline(self, points: Sequence[tuple[str, Sequence[Timing], str]], title: str, words: str) -> str:
        """Draw fractions of a copy against row lengths: series by name, timings, and peer ("" for the candidate)."""
        series = [
            Series(
                name,
                peer or timings[0].dtype,
                tuple(timing.row_bytes for timing in timings),
                tuple(dict(timing.peers)[peer] if peer else timing.of_copy for timing in timings),
            )
            for name, timings, peer in points
        ]
        return roofline(series, self._name(), title, words)

    def history(self, values: Sequence[float], title: str, words: str) -> str:
        """Draw fractions of a copy, run after run."""
        return history(values, self._name(), title, words)

    def _name(self) -> str:
        self._drawn += 1
        return f"plot{self._drawn}"
