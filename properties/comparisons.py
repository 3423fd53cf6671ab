"""Compare two results of one candidate that ought to be equal: for properties that need no expected value.

Honest programs may differ here in the last bits (float atomics; a reciprocal in one range and a division in another),
so bits are only demanded where the candidate promises them (``determinism``). Of any candidate it is demanded that a
*repeatable* difference stays within what two orders of addition make of a row, as a rule (`_allowed`): a program may
choose its way by what an input holds, and another one where a NaN is in it, but it divides a row by one mean either
way. Where each call may add up in another order (by turns, by chance, whichever was faster) the results of one input
differ as much as those of two, and nothing was made of the change.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from .figures import apart
from .findings import Finding, Kind
from .inputs import Input, bits
from .trial import Trial

#: In unit roundoffs of the storage type. Two results of the contract, each within 2.02 of x / m, for two means that
#: differ by the two roundings of one division more or less: 2 * 2.02 + 2, rounded up.
TOLERANCE = 8.0
#: Recipes whose rows drive a sum off in one direction: one value, added again and again, is rounded the same way.
_DRIVEN = ("constant",)
#: Further calls on either input, all of which must give the bits of the first before the change is blamed: a program
#: that takes another order in every second call, by chance, seems steady on both once in 2^24 times.
_REPEATS = 12
_ALL = slice(None)


def same_bits(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Elementwise: equal in every bit, or both NaN (payloads are nobody's promise)."""
    return (bits(left) == bits(right)) | (left.isnan() & right.isnan())


def expect_same(
    trial: Trial,
    before: tuple[Input, torch.Tensor],
    after: tuple[Input, torch.Tensor],
    change: str,
    pick: torch.Tensor | slice = _ALL,
    undone: Callable[[torch.Tensor], torch.Tensor] = lambda result: result,
) -> None:
    """Report a difference between two results which a property says are equal.

    Args:
        trial: of the property.
        before: an input and its result.
        after: the changed input and its result, of the same shape and dtype.
        change: what was done in between, for the report: "its input is multiplied by 2^5".
        pick: the part (of dimension 0) that is to be equal.
        undone: makes of the second result what the first is to be.
    """
    first, second = before[1][pick], undone(after[1])[pick]
    same = same_bits(first, second)
    if bool(same.all()):
        return
    if "determinism" in trial.subject.required:
        expect_bits(trial, first, second, change)
    near = same | _close(first, second, _allowed(trial, first))
    if bool(near.all()):
        trial.notes.add("bits change where they need not")
        return
    for given, result in (before, after):  # one behind the other: turns that are taken would fall on the same input
        if not all(bool(same_bits(result, trial.check(given)).all()) for _ in range(_REPEATS)):
            trial.notes.add("bits change from call to call")
            return
    trial.report(_finding(first, second, near, f"the result changes when {change}"))


def expect_bits(trial: Trial, first: torch.Tensor, second: torch.Tensor, change: str) -> None:
    """Report where two results differ in any bit; ``change`` as for `expect_same`."""
    same = same_bits(first, second)
    if not bool(same.all()):
        trial.report(_finding(first, second, same, f"the bits of the result change when {change}"))


def expect_near(trial: Trial, first: torch.Tensor, second: torch.Tensor, change: str) -> None:
    """Report where two results differ by more than two right ones can, whatever the order of their sums.

    Args:
        trial: of the property.
        first: a result, rows along dimension 1.
        second: another one, of the same shape and dtype.
        change: what was done in between, for the report.
    """
    spread = trial.subject.operator.spread(first.shape[1], str(first.dtype).removeprefix("torch."))
    left, right = first.double(), second.double()
    near = (left - right).abs() <= spread * torch.maximum(left.abs(), right.abs()) + 2 * quantum(first)
    near |= ~left.isfinite() | ~right.isfinite()
    if not bool(near.all()):
        trial.report(_finding(first, second, near, f"the result changes when {change}"))


def quantum(result: torch.Tensor) -> float:
    """The smallest subnormal number of a result's type."""
    facts = torch.finfo(result.dtype)
    return facts.smallest_normal * facts.eps


def _allowed(trial: Trial, result: torch.Tensor) -> float:
    """How far two results of one row may be apart, relative to either, if nothing was made of a change.

    The errors of n additions are as often up as down: they add up to some sqrt(n) roundoffs, so what is allowed is what
    the worst row of sqrt(n) columns may make. On the recipes compared here, up to the 16384 columns that are drawn, one
    column after the other was off by sqrt(n) roundoffs at most; this allows two results twice that and more.
    """
    columns, dtype = result.shape[1], str(result.dtype).removeprefix("torch.")
    added = columns if trial.case.values in _DRIVEN else math.isqrt(columns)
    return max(TOLERANCE * torch.finfo(result.dtype).eps / 2, trial.subject.operator.spread(added, dtype))


def _close(first: torch.Tensor, second: torch.Tensor, allowed: float) -> torch.Tensor:
    left, right = first.double(), second.double()
    return (left - right).abs() <= allowed * left.abs() + 2 * quantum(first)


def _finding(first: torch.Tensor, second: torch.Tensor, same: torch.Tensor, text: str) -> Finding:
    places = (~same).nonzero()[:5].tolist()
    lines = [
        f"at {place}: {before} before, {after} after"
        for place in places
        for before, after in [apart(float(first[tuple(place)]), float(second[tuple(place)]))]
    ]
    return Finding(Kind.WRONG_VALUE, f"{text} ({int((~same).sum())} of {same.numel()} elements)", tuple(lines))
