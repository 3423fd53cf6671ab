"""The operator record of L1 normalization: the contract's numbers (`reference.exact`) turned into words."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from reference import exact, explain
from reference.formats import accumulator, format_of
from reference.mean import gamma
from reference.verdict import Reason, Tier, Verdict

from .findings import Kind
from .operators import Assessment, Fault, Metric, Operator

Numbers: TypeAlias = npt.NDArray[np.float64]

_ROOT = Path(__file__).resolve().parent.parent
#: Wrong rows that are looked at element by element.
_ROWS_EXPLAINED = 16
#: Elements looked at in all of them together.
_ELEMENTS_EXPLAINED = 1 << 22
#: From this many elements on several threads judge; a core does about 2^24 a second.
_PARALLEL = 1 << 23
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Question 1's limit, in unit roundoffs of the storage type.
_SCALING_LIMIT = 2.02
#: General values are judged up to this many columns: beyond, the bound gamma(n + 1) says too little.
_SUM_LIMIT = 1 << 20


def assess(x: torch.Tensor, y: torch.Tensor) -> Assessment:
    """Judge y = x / mean(|x|, dim=1) by the contract. Both contiguous, one shape and dtype, any device."""
    dtype = str(x.dtype).removeprefix("torch.")
    given, got = _rows(x), _rows(y)

    def fetch(rows: slice, columns: slice) -> tuple[Numbers, Numbers]:
        return _numbers(given[rows, columns]), _numbers(got[rows, columns])

    verdict = _judge_in_parallel(fetch, given.shape[0], given.shape[1], dtype)
    metrics = _metrics(verdict, dtype, given.shape[1])
    if not verdict.accepted:
        return Assessment(_fault(given, got, dtype, verdict), metrics)
    notes = frozenset({"the mean is rounded to the storage type"} if verdict.rounded_mean.any() else ())
    return Assessment(None, metrics, notes, _inaccurate(verdict, dtype))


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
            lambda inner, along: fetch(slice(top + inner.start, top + inner.stop), along), bottom - top, columns, dtype
        )

    with ThreadPoolExecutor(workers) as pool:
        return Verdict.joined(list(pool.map(part, tops)))


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dim() == 2 else tensor.movedim(1, -1).reshape(-1, tensor.shape[1])


def _numbers(block: torch.Tensor) -> Numbers:
    numbers: Numbers = block.to("cpu", torch.float64).numpy()
    return numbers


def _metrics(verdict: Verdict, dtype: str, columns: int) -> dict[str, Metric]:
    ordinary = verdict.tier != Tier.SPECIAL
    if not ordinary.any():
        return {}
    scaling = np.nan_to_num(verdict.scaling[ordinary], nan=np.inf)
    mean = np.abs(verdict.mean_error_in_units[ordinary])
    # In roundoffs only where roundoffs bound it: not where a mean is so small that its quantum does, or is rounded.
    roundoff = accumulator(dtype).roundoff
    by_roundoff = (verdict.allowed[ordinary] <= 1.5 * gamma(columns + 1, roundoff) + 8 * roundoff) & (
        ~verdict.rounded_mean[ordinary]
    )
    error = np.where(by_roundoff, np.abs(verdict.mean_error[ordinary]) / roundoff, 0.0)
    return {
        "scaling error / u": Metric(float(scaling.max()), _SCALING_LIMIT),
        "mean error / limit": Metric(float(np.nan_to_num(mean, nan=np.inf).max()), 1.0),
        "mean error / u": Metric(float(np.nan_to_num(error, nan=np.inf).max()), None),
    }


def _inaccurate(verdict: Verdict, dtype: str) -> str:
    rows = np.flatnonzero(verdict.inaccurate)
    if len(rows) == 0:
        return ""
    worst = rows[np.argmax(np.abs(verdict.mean_error[rows]))]
    error = abs(verdict.mean_error[worst]) / accumulator(dtype).roundoff
    return f"the mean of row {worst} is off by {error:.1f} u, more than 256 lanes and a tree need"


def _fault(given: torch.Tensor, got: torch.Tensor, dtype: str, verdict: Verdict) -> Fault:
    wrong = np.flatnonzero(~verdict.ok)
    columns = given.shape[1]
    chosen = wrong[: max(1, min(_ROWS_EXPLAINED, _ELEMENTS_EXPLAINED // columns))]
    x, y = _numbers(given[chosen.tolist()]), _numbers(got[chosen.tolist()])
    reasons = [Reason(code) for code in verdict.reason[chosen]]
    special = all(reason is Reason.SPECIAL for reason in reasons)
    return Fault(
        kind=Kind.WRONG_SPECIAL if special else Kind.WRONG_VALUE,
        text=factor_words(verdict, wrong, columns, given),
        bad_rows=~verdict.ok,
        rows=chosen.astype(np.int64),
        bad=np.stack([explain.offending(a, b, dtype) for a, b in zip(x, y, strict=True)]),
        got=y,
        expected=(expected := np.stack([explain.expected(a, dtype) for a in x])),
        bound=_bounds(expected, verdict.allowed[chosen], dtype),
    )


def _bounds(expected: Numbers, allowed: Numbers, dtype: str) -> Numbers:
    """How far each element may be from the exact quotient, given what each row's mean may err."""
    quantum = format_of(dtype).quantum
    relative = np.array([explain.bound(1.0, float(error), dtype) for error in allowed])
    with np.errstate(invalid="ignore"):
        bounds: Numbers = np.nan_to_num(np.abs(expected) * relative[:, None], nan=0.0, posinf=np.inf) + quantum
    return bounds


def factor_words(verdict: Verdict, wrong: npt.NDArray[np.intp], columns: int, given: torch.Tensor) -> str:
    """What the mean that the rows show is of the exact one, in the words of the fault that makes it."""
    factors = verdict.factor[wrong]
    consistent = np.isin(verdict.reason[wrong], (Reason.MEAN, Reason.BITS))
    if not consistent.all():
        return ""
    low, high = float(factors.min()), float(factors.max())
    if not np.isfinite([low, high]).all() or low <= 0:
        return ""
    if high / low - 1 < 1e-4:
        return _one_factor(float(np.median(factors)), columns)
    epsilon = _epsilon(verdict, wrong, given)
    if epsilon:
        return epsilon
    return (
        f"each row is divided by one number, but not by its mean: that number is {low:.6g} to {high:.6g} times the mean"
    )


def _one_factor(factor: float, columns: int) -> str:
    size = "small" if factor > 1 else "large"
    ratio = factor if factor > 1 else 1 / factor
    exactly = f"every value is too {size} by exactly the factor"
    if columns > 1 and abs(factor / columns - 1) < 1e-4:
        return f"{exactly} {columns} = columns: the sum was used where the mean belongs"
    for delta in (1, -1):
        if columns + delta > 0 and abs(factor * (columns + delta) / columns - 1) < 0.1 / columns:
            fraction = f"{max(columns, columns + delta)}/{min(columns, columns + delta)}"
            return f"{exactly} {fraction}: the sum was divided by columns {delta:+d}"
    padded = columns / factor
    if abs(padded - round(padded)) < 0.05 and round(padded) != columns and round(padded) % 8 == 0:
        return f"{exactly} {ratio:.6g}: the sum was divided by {round(padded)}, not by the {columns} columns"
    if abs(ratio - round(ratio)) < 1e-4 * ratio:
        return f"{exactly} {round(ratio)}"
    return f"every value is too {size} by the factor {ratio:.9g}"


def _epsilon(verdict: Verdict, wrong: npt.NDArray[np.intp], given: torch.Tensor) -> str:
    """Whether the numbers are the means plus one constant."""
    rows = wrong[:64]
    means = np.array([np.abs(_numbers(given[int(row)])).mean() for row in rows])
    added = (verdict.factor[rows] - 1) * means
    middle = float(np.median(added))
    if len(rows) and middle > 0 and np.all(np.abs(added / middle - 1) < 0.02):
        return f"each row is divided by its mean plus about {middle:.3g}: an epsilon was added"
    return ""


L1_NORM = Operator(
    name="l1_norm",
    reference=_ROOT / "reference" / "l1_norm.py",
    shipped=_ROOT / "kernels" / "l1_norm.py",
    init=(),
    assess=assess,
    scale_invariant=True,
    odd=True,
    sum_limit=_SUM_LIMIT,
)
