"""A case: everything that is needed to make one input again, on any machine, from one shell-safe line.

    shape=4x1025,dtype=float32,layout=offset3+pitch5,values=signed,seed=7,plants=nan@5

A case holds a *recipe*, never values: the values come from integer hashing (`values`), so a case found on one card
replays on another. The line has no blank, quote or other character that a shell would change.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields

from . import layouts, values
from .layouts import CONTIGUOUS, Layout
from .values import Plant

#: torch dtype names in the order in which strategies draw them (the first is the compulsory one).
DTYPES = ("float32", "float16", "bfloat16", "float64")
#: Short names used by ``--require`` and by the table of the supported domain.
DTYPE_FEATURES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
#: Parts of the domain beyond contiguous 2-D fp32: what each name means stands in README, "What is required".
LAYOUT_FEATURES = ("offset", "strided", "expanded", "negated", "nd", "empty")
FEATURES = (*DTYPE_FEATURES.values(), *LAYOUT_FEATURES)

_PLANT = re.compile(r"(-?[a-z0]+)@(\d+)")


@dataclass(frozen=True)
class Case:
    """One input, and the one integer with which a property may turn it into a second one.

    Attributes:
        shape: sizes of all dimensions; dimension 1 is the one that is normalised.
        dtype: torch dtype name.
        layout: how the input lies in its storage.
        values: name of a recipe in `values.RECIPES`.
        seed: of the integer hash.
        plants: special values put over the recipe's.
        turn: what a property does with the input (a power of two, a row number); its meaning is the property's.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: Layout = CONTIGUOUS
    values: str = "signed"
    seed: int = 0
    plants: tuple[Plant, ...] = ()
    turn: int = 0

    def __str__(self) -> str:
        """The line from which `parse` makes an equal case; fields at their defaults are left out."""
        parts = ["shape=" + "x".join(map(str, self.shape)), f"dtype={self.dtype}"]
        if self.layout != CONTIGUOUS:
            parts.append(f"layout={self.layout}")
        parts += [f"values={self.values}", f"seed={self.seed}"]
        if self.plants:
            parts.append("plants=" + "+".join(map(str, self.plants)))
        if self.turn:
            parts.append(f"turn={self.turn}")
        return ",".join(parts)

    @property
    def numel(self) -> int:
        """Elements of the input."""
        return math.prod(self.shape)

    @property
    def columns(self) -> int:
        """Elements that one mean is taken over: the size of dimension 1."""
        return self.shape[1]

    @property
    def rows(self) -> int:
        """How many means there are: the product of all sizes but that of dimension 1."""
        return math.prod(self.shape[:1] + self.shape[2:])

    @property
    def row_is_innermost(self) -> bool:
        """Whether the columns of a row are neighbours in row-major order."""
        return math.prod(self.shape[2:]) == 1


def parse(line: str) -> Case:
    """The case that a line describes.

    Raises:
        ValueError: one line that says which part of ``line`` is wrong and what is allowed there.
    """
    given: dict[str, str] = {}
    for part in line.split(","):
        name, equals, text = part.partition("=")
        known = [field.name for field in fields(Case)]
        if not equals or name not in known:
            raise ValueError(f"{part!r} in the case line is not NAME=VALUE with a NAME of {', '.join(known)}")
        given[name] = text
    if "shape" not in given:
        raise ValueError(f"the case line {line!r} has no shape=ROWSxCOLUMNS")
    shape = _shape(given["shape"])
    dtype = given.get("dtype", "float32")
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype} is not one of {', '.join(DTYPES)}")
    recipe = given.get("values", "signed")
    if recipe not in values.RECIPES:
        raise ValueError(f"values={recipe} is not one of {', '.join(values.RECIPES)}")
    layout = layouts.parse(given.get("layout", "contiguous"))
    layouts.geometry(layout, shape)
    plants = tuple(_plant(text, math.prod(shape)) for text in given["plants"].split("+")) if "plants" in given else ()
    return Case(shape, dtype, layout, recipe, _int(given, "seed"), plants, _int(given, "turn"))


def features(case: Case) -> frozenset[str]:
    """The parts of the domain (names of `FEATURES`) that a candidate must support to be judged on this case."""
    layout = case.layout
    found = {DTYPE_FEATURES[case.dtype]}
    found |= {"offset"} if layout.offset else set()
    found |= {"strided"} if layout.gaps else set()
    found |= {"expanded"} if layout.shared else set()
    found |= {"negated"} if layout.negated else set()
    found |= {"nd"} if len(case.shape) > 2 else set()
    found |= {"empty"} if case.numel == 0 else set()
    return frozenset(found)


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(size) for size in text.split("x"))
    except ValueError:
        shape = ()
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"shape={text} is not two or more sizes joined by x, such as 4x1025")
    return shape


def _plant(text: str, numel: int) -> Plant:
    match = _PLANT.fullmatch(text)
    if match is None or match[1] not in values.SPECIALS:
        raise ValueError(f"plant {text!r} is not WHAT@INDEX with a WHAT of {', '.join(values.SPECIALS)}")
    if int(match[2]) >= numel:
        raise ValueError(f"plant {text!r} lies outside an input of {numel} elements")
    return Plant(match[1], int(match[2]))


def _int(given: dict[str, str], name: str) -> int:
    try:
        return int(given.get(name, "0"))
    except ValueError:
        raise ValueError(f"{name}={given[name]} is not an integer") from None
