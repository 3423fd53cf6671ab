"""Make a failing case smaller by asking of ever smaller ones whether they fail: few questions, each about one thing.

Hypothesis shrinks what it drew; this reduces any case, pinned ones too, and takes a logarithm of questions where each
may cost a process. It takes for granted that what fails at some length fails at all greater ones; where that does not
hold, the case it ends with still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .cases import DTYPES, Case
from .layouts import CONTIGUOUS, Layout

#: Recipes in the order in which they say least about a fault.
_PLAIN = ("ones", "integers", "signed")


def reduce(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that fails, or ``case`` itself.

    Args:
        case: known to fail.
        fails: asked about smaller cases.
    """
    for step in (_sizes, _layout, _rank, _plants, _values, _sizes):
        case = step(case, fails)
    return case


def size(case: Case) -> tuple[int | str, ...]:
    """What makes a case small: few elements, a plain layout, a common dtype, plain values, a short line."""
    recipe = _PLAIN.index(case.values) if case.values in _PLAIN else len(_PLAIN)
    layout = 0 if case.layout == CONTIGUOUS else len(str(case.layout))
    line = str(case)
    return (case.numel, layout, len(case.plants), DTYPES.index(case.dtype), recipe, len(line), line)


def _sizes(case: Case, fails: Callable[[Case], bool]) -> Case:
    for dim in range(len(case.shape)):
        case = _dimension(case, dim, fails)
    return case


def _dimension(case: Case, dim: int, fails: Callable[[Case], bool]) -> Case:
    """The least size of one dimension that fails, by bisection."""
    right, wrong = 0, case.shape[dim]
    while wrong - right > 1:
        # The smallest sizes first: most faults show there, and then one question was enough.
        middle = right + 1 if right < 2 else (right + wrong) // 2
        smaller = _resized(case, dim, middle)
        if fails(smaller):
            case, wrong = smaller, middle
        else:
            right = middle
    return case


def _resized(case: Case, dim: int, length: int) -> Case:
    shape = (*case.shape[:dim], length, *case.shape[dim + 1 :])
    smaller = replace(case, shape=shape)
    plants = {plant.index % smaller.numel: plant for plant in case.plants} if smaller.numel else {}
    kept = tuple(replace(plant, index=index) for index, plant in sorted(plants.items()))
    return replace(smaller, plants=kept)


def _rank(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Without the dimensions behind the row, as a matrix of as many elements."""
    if len(case.shape) == 2 or case.layout != CONTIGUOUS:
        return case
    matrix = replace(case, shape=(case.numel // case.columns if case.columns else 0, case.columns))
    return matrix if fails(matrix) else case


def _layout(case: Case, fails: Callable[[Case], bool]) -> Case:
    for layout in _plainer(case.layout):
        if layout != case.layout and fails(simpler := replace(case, layout=layout)):
            return simpler if layout == CONTIGUOUS else _layout(simpler, fails)
    return case


def _plainer(layout: Layout) -> Iterator[Layout]:
    """Contiguous, then the layout with one token less."""
    yield CONTIGUOUS
    yield replace(layout, offset=0)
    yield replace(layout, pitch=0)
    yield replace(layout, step=1)
    yield replace(layout, order=())
    yield replace(layout, expand=())
    yield replace(layout, cut=())
    yield replace(layout, lap=0)
    yield replace(layout, negated=False)


def _plants(case: Case, fails: Callable[[Case], bool]) -> Case:
    for plant in case.plants:
        fewer = replace(case, plants=tuple(each for each in case.plants if each != plant))
        if fails(fewer):
            case = fewer
    return case


def _values(case: Case, fails: Callable[[Case], bool]) -> Case:
    plain = _PLAIN[: _PLAIN.index(case.values)] if case.values in _PLAIN else _PLAIN
    for dtype in DTYPES[: DTYPES.index(case.dtype)]:
        if fails(changed := replace(case, dtype=dtype)):
            case = changed
            break
    for recipe in plain:
        if fails(changed := replace(case, values=recipe)):
            case = changed
            break
    if case.seed and fails(changed := replace(case, seed=0)):
        case = changed
    return case
