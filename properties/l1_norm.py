"""The operator record of L1 normalization: the contract's numbers (`reference.exact`) turned into words."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from reference import exact, explain
from reference.formats import accumulator, format_of
from reference.mean import gamma
from reference.verdict import Reason, Tier, Verdict, WholeRow

from . import l1_quick, l1_words
from .findings import Kind
from .l1_words import Rows
from .operators import Assessment, Fault, Metric, Operator

Numbers: TypeAlias = npt.NDArray[np.float64]

_ROOT = Path(__file__).resolve().parent.parent
#: Wrong rows that are looked at element by element.
_ROWS_EXPLAINED = 16
#: Elements looked at in all of them together.
_ELEMENTS_EXPLAINED = 1 << 22
#: From this many elements on several threads judge; a core does about 2^24 a second.
_PARALLEL = 1 << 23
#: From this many elements on, where they lie there, rows are looked at on the spot first: the host takes a second for
#: them, and gigabytes of them a minute.
_QUICK = {"cuda": 1 << 28}
#: One row in so many may be left for the host to judge; where more are, all are judged there.
_FEW = 16
#: Columns up to which a few rows of such an input are measured: a second's work.
_LONGEST_MEASURED = 1 << 20
#: Elements a block where threads share the work: larger than for one, so that Python's lock is rarely wanted.
_SHARED_BLOCK = 1 << 18
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Roundings of a term on its way back, each to the storage type: both quotients, the square, products, sums, a cast.
_GRADIENT_ROUNDINGS = 16
#: Question 1's limit, in unit roundoffs of the storage type.
_SCALING_LIMIT = 2.02


def assess(x: torch.Tensor, y: torch.Tensor) -> Assessment:
    """Judge y = x / mean(|x|, dim=1) by the contract. Both contiguous, one shape and dtype, any device."""
    dtype = str(x.dtype).removeprefix("torch.")
    given, got = _rows(x), _rows(y)
    if x.numel() >= _QUICK.get(x.device.type, x.numel() + 1):
        quick = _assess_quickly(given, got, dtype)
        if quick is not None:
            return quick

    def fetch(rows: slice, columns: slice) -> tuple[Numbers, Numbers]:
        return _numbers(given[rows, columns]), _numbers(got[rows, columns])

    verdict = _judge_in_parallel(fetch, given.shape[0], given.shape[1], dtype)
    if not verdict.accepted:
        metrics = _metrics(verdict, dtype, given.shape[1])
        fault = _fault(given, got, dtype, verdict)
        plain = fault.kind is Kind.WRONG_VALUE and x.numel() <= _ELEMENTS_EXPLAINED
        elsewhere = l1_words.other_dimension(x, y) if plain else ""
        return Assessment(replace(fault, text=elsewhere or fault.text), metrics)
    return _accepted(verdict, dtype, given.shape[1])


def spread(columns: int, dtype: str) -> float:
    """How far two results of the contract may be apart, for one row: twice what question 1 and 2 allow, and a rounding.

    Args:
        columns: length of the row.
        dtype: torch dtype name.
    """
    stored, summed = format_of(dtype).roundoff, accumulator(dtype).roundoff
    return 2 * (_SCALING_LIMIT * stored + max(stored, gamma(columns + 1, summed))) + stored


def gradient(x: torch.Tensor, inflow: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What flows back through y = x / m, m = mean(|x|) = S / n: g / m - sign(x) sum(g x) / (n m^2).

    Args:
        x: input [rows, columns, ...], no row of zeros.
        inflow: g, of x's shape and dtype.

    Returns:
        Both of x's shape, as float64: the gradient, and how far a right one may be off: what sums of n terms in any
        order and a few roundings of each factor to the storage type can add up to, term by term.
    """
    wide, g, columns = x.double(), inflow.double(), x.shape[1]
    mean = wide.abs().mean(1, keepdim=True)
    term = (g * wide).sum(1, keepdim=True) / (columns * mean**2)
    size = (g * wide).abs().sum(1, keepdim=True) / (columns * mean**2)
    dtype = str(x.dtype).removeprefix("torch.")
    relative = _GRADIENT_ROUNDINGS * format_of(dtype).roundoff + 2 * gamma(columns + 1, accumulator(dtype).roundoff)
    bound = relative * (g.abs() / mean + size) + format_of(dtype).quantum * _GRADIENT_ROUNDINGS
    # Where the sum of (g / m) (x / m) leaves the storage type on its way, nothing can be expected.
    overflows = size * columns >= format_of(dtype).largest / 4
    return g / mean - wide.sign() * term, bound.where(~overflows, torch.inf)


def _judge_in_parallel(fetch: exact.Fetch, rows: int, columns: int, dtype: str) -> Verdict:
    """`exact.judge_blocks`, rows shared out among threads where there are enough elements (numpy lets them run)."""
    workers = min(rows, _THREADS) if rows * columns >= _PARALLEL else 1
    if workers == 1:
        return exact.judge_blocks(fetch, rows, columns, dtype)
    height = -(-rows // (4 * workers))
    tops = range(0, rows, height)

    def part(top: int) -> Verdict:
        bottom = min(top + height, rows)
        return exact.judge_blocks(
            lambda inner, along: fetch(slice(top + inner.start, top + inner.stop), along),
            bottom - top,
            columns,
            dtype,
            block_elements=_SHARED_BLOCK,
        )

    with ThreadPoolExecutor(workers) as pool:
        return Verdict.joined(list(pool.map(part, tops)))


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dim() == 2 else tensor.movedim(1, -1).reshape(-1, tensor.shape[1])


def _numbers(block: torch.Tensor) -> Numbers:
    numbers: Numbers = block.cpu().to(torch.float64).numpy()  # narrow on the way from a GPU, wide here
    return numbers


def _assess_quickly(given: torch.Tensor, got: torch.Tensor, dtype: str) -> Assessment | None:
    """What is to be said where a quick look clears nearly all rows and the oracle the others; None elsewhere.

    A few of the cleared rows, from first to last, are judged besides: for the metrics.
    """
    rows, columns = given.shape
    rest = (~l1_quick.cleared(given, got)).nonzero().flatten()
    if len(rest) * _FEW > rows:
        return None
    some = torch.linspace(0, rows - 1, _ROWS_EXPLAINED, device=given.device).long()
    if columns > _LONGEST_MEASURED:
        some = some[:0]
    looked_at = torch.cat([rest, some]).unique()
    verdict = _judge_in_parallel(
        lambda here, along: (_numbers(given[looked_at[here], along]), _numbers(got[looked_at[here], along])),
        len(looked_at),
        columns,
        dtype,
    )
    return _accepted(verdict, dtype, columns, looked_at.cpu().numpy()) if verdict.accepted else None


def _accepted(verdict: Verdict, dtype: str, columns: int, numbers: npt.NDArray[np.int64] | None = None) -> Assessment:
    """What is to be said of rows that are all accepted; ``numbers`` are theirs where they are not all there are."""
    notes = frozenset({"the mean is rounded to the storage type"} if verdict.rounded_mean.any() else ())
    return Assessment(None, _metrics(verdict, dtype, columns), notes, _inaccurate(verdict, dtype, numbers))


def _metrics(verdict: Verdict, dtype: str, columns: int) -> dict[str, Metric]:
    """How far off rows are, accepted or not: the worst of those in which a figure means something; without one, none.

    A row has a mean to speak of where one number explains it. In roundoffs an accepted row's is told only where they
    bound it: not where the mean is so small that its quantum does, or is rounded to the storage type.
    """
    plain = (verdict.tier != Tier.SPECIAL) & (verdict.whole_row == WholeRow.NO) & (verdict.reason != Reason.SPECIAL)
    explained = plain & (verdict.reason != Reason.SCALING)
    roundoff = accumulator(dtype).roundoff
    by_roundoff = (verdict.allowed <= 1.5 * gamma(columns + 1, roundoff) + 8 * roundoff) & ~verdict.rounded_mean
    figures = {
        "scaling error / u": (verdict.scaling[plain], _SCALING_LIMIT),
        "mean error / limit": (np.abs(verdict.mean_error_in_units[explained]), 1.0),
        "mean error / u": (np.abs(verdict.mean_error[explained & (by_roundoff | ~verdict.ok)]) / roundoff, None),
    }
    return {
        name: Metric(float(np.nan_to_num(values, nan=np.inf, posinf=np.inf).max()), bound)
        for name, (values, bound) in figures.items()
        if len(values)
    }


def _inaccurate(verdict: Verdict, dtype: str, numbers: npt.NDArray[np.int64] | None) -> str:
    rows = np.flatnonzero(verdict.inaccurate)
    if len(rows) == 0:
        return ""
    worst = rows[np.argmax(np.abs(verdict.mean_error[rows]))]
    error = abs(verdict.mean_error[worst]) / accumulator(dtype).roundoff
    row = worst if numbers is None else numbers[worst]
    return f"the mean of row {row} is off by {error:.1f} u, more than 256 lanes and a tree need"


def _fault(given: torch.Tensor, got: torch.Tensor, dtype: str, verdict: Verdict) -> Fault:
    wrong = np.flatnonzero(~verdict.ok)
    columns = given.shape[1]
    chosen = wrong[: max(1, min(_ROWS_EXPLAINED, _ELEMENTS_EXPLAINED // columns))]
    x, y = _numbers(given[chosen.tolist()]), _numbers(got[chosen.tolist()])
    expected = np.stack([explain.expected(a, dtype) for a in x])
    bounds = _bounds(expected, verdict.allowed[chosen], dtype)
    bounds[verdict.reason[chosen] == Reason.BITS] = 0.0
    bad = np.stack([explain.offending(a, b, dtype) for a, b in zip(x, y, strict=True)])
    # Where the exact mean sets some elements apart, they are the wrong ones, even if most of the row is.
    with np.errstate(invalid="ignore"):
        apart = ~(np.abs(y - expected) <= bounds)
    divided = (verdict.reason[chosen] == Reason.SCALING) & apart.any(1) & ~apart.all(1)
    bad = np.where(divided[:, None], apart, bad)
    # A rule for special values is broken only where one was expected: NaN in an ordinary row is a wrong value.
    special = bool(np.all((expected[bad] == 0) | ~np.isfinite(expected[bad])))
    fault = Fault(
        kind=Kind.WRONG_SPECIAL if special else Kind.WRONG_VALUE,
        text="",
        bad_rows=~verdict.ok,
        rows=chosen.astype(np.int64),
        bad=bad,
        got=y,
        expected=expected,
        bound=bounds,
    )
    return replace(fault, text=_words(fault, given, x))


def _bounds(expected: Numbers, allowed: Numbers, dtype: str) -> Numbers:
    """How far each element may be from the exact quotient, given what each row's mean may err."""
    quantum = format_of(dtype).quantum
    relative = np.array([explain.bound(1.0, float(error), dtype) for error in allowed])
    with np.errstate(invalid="ignore"):
        bounds: Numbers = np.nan_to_num(np.abs(expected) * relative[:, None], nan=0.0, posinf=np.inf) + quantum
    return bounds


def _words(fault: Fault, given: torch.Tensor, x: Numbers) -> str:
    """What was done instead, as far as it can be told."""
    if fault.kind is Kind.WRONG_SPECIAL:
        return l1_words.special_row(x[0], fault.got[0], fault.expected[0], fault.bad[0])
    if given.numel() > _ELEMENTS_EXPLAINED:
        return ""
    with np.errstate(all="ignore"):
        means = np.abs(_numbers(given)).mean(1)
    rows = Rows(x, fault.got, fault.rows, means, fault.bad_rows, format_of(str(given.dtype)))
    return l1_words.divisor(rows)


L1_NORM = Operator(
    name="l1_norm",
    reference=_ROOT / "reference" / "l1_norm.py",
    shipped=_ROOT / "kernels" / "l1_norm.py",
    init=(),
    assess=assess,
    scale_invariant=True,
    odd=True,
    spread=spread,
    gradient=gradient,
    idempotent=True,
    sums_to_columns=True,
)
