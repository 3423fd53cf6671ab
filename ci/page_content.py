"""What a page can be made of, whatever it is written as: sections of paragraphs, tables, figures and folds.

Promise: plain records. Text in them is text; whoever writes a format escapes it there, all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

# How a word is meant, and the sign that says so without colour.
TONES = {"good": "✓", "bad": "✗", "warn": "!", "none": "○"}


@dataclass(frozen=True)
class Verdict:
    """A word that is a verdict, and how it is meant: one of `TONES`."""

    word: str
    tone: str

    @property
    def sign(self) -> str:
        """Says the tone without colour."""
        return TONES[self.tone]


Cell = str | Verdict


@dataclass(frozen=True)
class Text:
    """A paragraph, after a verdict where it begins with one."""

    words: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Code:
    """A line for a shell."""

    line: str


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: what it holds in a line, its head, its rows, and the numbers of its columns of figures."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    figures: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A drawing: its title, what it shows in words, and the SVG, made by us; "" where nothing could draw it."""

    title: str
    words: str
    svg: str


@dataclass(frozen=True)
class Gallery:
    """Small drawings of one kind side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Fold:
    """What is shown only to those who open it."""

    title: str
    blocks: "tuple[Block, ...]"


Block = Text | Code | Items | Table | Figure | Gallery | Fold


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; level 1 is below the page's own title."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 1


@dataclass
class Page:
    """A page: its title, a line on where it comes from, the verdicts at its head, and its sections."""

    title: str
    origin: str
    verdicts: Sequence[Text] = ()
    sections: list[Section] = field(default_factory=list)
