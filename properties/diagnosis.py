"""Say in plain words where a result is wrong: pure functions over (input, fault), no expected values of their own.

Each function looks for one pattern and returns a phrase, or an empty string where the pattern is not there. `describe`
joins those that apply. Patterns are claimed only when they cover *all* wrong elements that were looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from .figures import factor, factors
from .inputs import Input
from .operators import Fault

Mask = npt.NDArray[np.bool_]

#: Types that hold less than a type, the smallest first: what arithmetic may have gone through.
_NARROWER = {
    "float64": ("bfloat16", "float16", "float32"),
    "float32": ("bfloat16", "float16"),
    "float16": (),
    "bfloat16": (),
}
#: Values that must all lie in the smaller type before it is named: by chance, one float32 in 2^13 is a float16.
_MANY = 4
#: Roundings by which two values of one true ratio to what is expected may differ, in units of 2 u_out.
_ROUNDINGS = 4


def describe(given: Input, fault: Fault) -> str:
    """All phrases that apply, most telling first, joined by ``; ``."""
    # Where the operator itself names the cause, what stands in single elements only follows from it.
    instead = "" if fault.text else what_instead(given, fault)
    # A zero is right whatever its row is divided by: where only zeros are right, all is wrong.
    where = "" if (fault.bad | (fault.expected == 0)).all() else where_in_rows(fault.bad)
    if not fault.text and _scattered(fault.bad):
        where = by_magnitude(_given_rows(given, fault), fault.bad) or where
    phrases = [where, instead, which_rows(given, fault.bad_rows)]
    return "; ".join(phrase for phrase in phrases if phrase)


def where_in_rows(bad: Mask) -> str:
    """Which columns are wrong, where it is the same set in every wrong row."""
    wrong: Mask = np.any(bad, axis=0)
    always: Mask = np.all(bad, axis=0)
    columns = bad.shape[1]
    places = np.flatnonzero(wrong)
    if len(places) in (0, columns):
        return ""
    first, last = int(places[0]), int(places[-1])
    solid = len(places) == last - first + 1 and bool(always[first : last + 1].all())
    if solid and last == columns - 1:
        return (
            f"columns {first} and up are wrong, those below are right"
            if first < last
            else "only the last column is wrong"
        )
    if solid and first == 0:
        return f"columns below {last + 1} are wrong, those from there on are right"
    if first == last:
        return f"only column {first} is wrong"
    period = _period(places)
    if period:
        return f"every {period}th column is wrong, from column {first} on"
    return f"{len(places)} of {columns} columns are wrong, the first is column {first}"


def _scattered(bad: Mask) -> bool:
    """Whether other columns are wrong in one row than in another, or all in some and none in others."""
    return bool((bad.any(axis=0) != bad.all(axis=0)).any())


def what_instead(given: Input, fault: Fault) -> str:
    """What stands where the wrong elements are, where it is one recognisable thing."""
    got = fault.got[fault.bad]
    expected = fault.expected[fault.bad]
    if len(got) == 0:
        return ""
    given_values = _given_rows(given, fault)[fault.bad]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if np.all(got == 0):
            return "zeros stand there"
        if np.array_equal(got, given_values, equal_nan=True):
            return "the input itself stands there"
        if np.all(np.isnan(got)):
            gaps = given.geometry.length > given.logical.numel() and not given.logical.isnan().any()
            return "NaN stands there" + (", as where elements outside the view were read" if gaps else "")
        if np.all(np.isinf(got)):
            return "infinities stand there"
        if len(got) > 1 and np.all(got == got[0]):
            return f"{got[0]:g} stands there everywhere"
        if np.allclose(got, -expected, rtol=1e-2, atol=0):
            return "the sign is wrong"
        return narrower(got, given.dtype) or _ratio(got, expected, fault.bad, torch.finfo(given.logical.dtype).eps)


def how_far(fault: Fault) -> str:
    """How many elements are wrong and by how much: what can always be said."""
    wrong = f"{int(fault.bad.sum())} of {fault.bad.size} elements looked at are wrong"
    got, expected = fault.got[fault.bad], fault.expected[fault.bad]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        ratios = np.abs(got / expected)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if len(ratios) == 0:
        return wrong
    return f"{wrong}, {factors(float(ratios.min()), float(ratios.max()), 4)} times what they should be"


def by_magnitude(given: npt.NDArray[np.float64], bad: Mask) -> str:
    """Whether the wrong elements are those above, or below, some magnitude."""
    magnitude, wrong = np.abs(given), bad
    if wrong.all() or wrong.sum() < _MANY:
        return ""
    if magnitude[wrong].min() > magnitude[~wrong].max():
        return f"elements of magnitude {magnitude[wrong].min():.4g} and up are wrong, smaller ones are right"
    if magnitude[wrong].max() < magnitude[~wrong].min():
        return f"elements of magnitude {magnitude[wrong].max():.4g} and below are wrong, larger ones are right"
    return ""


def narrower(got: npt.NDArray[np.float64], dtype: str) -> str:
    """Which smaller type holds all of these values: the arithmetic, or the result, went through it."""
    if len(got) < _MANY or not np.isfinite(got).all():
        return ""
    for name in _NARROWER[dtype]:
        rounded = torch.from_numpy(got.copy()).to(getattr(torch, name)).double().numpy()
        if np.array_equal(rounded, got):
            return f"every wrong value is a {name} number: the result went through that type"
    return ""


def _ratio(got: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], bad: Mask, eps: float) -> str:
    """The one factor by which the wrong elements are off, where the others in their rows are right."""
    if len(got) < 2 or bad.all(axis=1).any() or not np.isfinite(got).all() or not (expected != 0).all():
        return ""
    ratios = got / expected
    middle = float(np.median(ratios))
    spread = float(np.abs(ratios / middle - 1).max())
    if spread <= _ROUNDINGS * eps and spread < abs(middle - 1) / 4:
        return f"they are {factor(middle)} times what they should be"
    return ""


def which_rows(given: Input, bad_rows: Mask) -> str:
    """Which rows are wrong, where not all of them are."""
    rows, wrong = len(bad_rows), np.flatnonzero(bad_rows)
    if rows == 1 or len(wrong) in (0, rows):
        return ""
    alignment = _misaligned_rows(given)
    if alignment is not None and np.array_equal(alignment, bad_rows):
        return "right except in rows whose start is not 16-byte aligned"
    first, last = int(wrong[0]), int(wrong[-1])
    if len(wrong) == 1:
        return f"only row {first} of {rows} is wrong"
    if len(wrong) == last - first + 1:
        if last == rows - 1:
            return f"rows {first} and up are wrong, those below are right"
        if first == 0:
            return f"rows below {last + 1} are wrong, those from there on are right"
        return f"rows {first} to {last} of {rows} are wrong"
    return f"{len(wrong)} of {rows} rows are wrong, the first is row {first}"


def _given_rows(given: Input, fault: Fault) -> npt.NDArray[np.float64]:
    flat = given.logical.movedim(1, -1).reshape(-1, given.shape[1])
    chosen: npt.NDArray[np.float64] = flat[fault.rows.tolist()].double().cpu().numpy()
    return chosen


def _misaligned_rows(given: Input) -> Mask | None:
    """For each row whether its first byte's place in the storage is no multiple of 16; None if that does not vary."""
    size = given.storage.element_size()
    strides = given.geometry.strides
    starts = np.array([given.geometry.offset], dtype=np.int64)
    for dim, (length, stride) in enumerate(zip(given.shape, strides, strict=True)):
        if dim != 1:
            starts = (starts[:, None] + np.arange(length, dtype=np.int64) * stride).reshape(-1)
    misaligned: Mask = starts * size % 16 != 0
    return misaligned if misaligned.any() and not misaligned.all() else None


def _period(places: npt.NDArray[np.intp]) -> int:
    steps = np.diff(places)
    return int(steps[0]) if len(steps) > 2 and steps[0] > 1 and bool((steps == steps[0]).all()) else 0
