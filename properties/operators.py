"""The operator record: all that the steps need to know of the function under test.

Cases, runner, judge and report see an operator only through this record. Every operator here works along dimension 1:
a *row* is the set of elements that differ in that index alone, a *column* an index along it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from .findings import Kind


@dataclass(frozen=True)
class Metric:
    """How far a result was from what was expected, in units of its bound where there is one.

    Attributes:
        value: the worst of the rows looked at.
        bound: what it may be; None where it is only reported.
    """

    value: float
    bound: float | None


@dataclass(frozen=True)
class Fault:
    """What is wrong with the values of one result.

    Attributes:
        kind: WRONG_VALUE, WRONG_SPECIAL or INACCURATE.
        text: what the operator itself can say about it (a factor, for example); may be empty.
        bad_rows: for each row whether it is wrong.
        rows: numbers of the wrong rows that were looked at closely.
        bad: for each of these rows and each column whether the element is wrong.
        got, expected: values of these rows, as float64.
        bound: how far each element may be from ``expected``.
    """

    kind: Kind
    text: str
    bad_rows: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]
    bad: npt.NDArray[np.bool_]
    got: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]
    bound: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Assessment:
    """What the oracle says about one result.

    Attributes:
        fault: None where the result may stand.
        metrics: worst errors by name; `hypothesis.target` climbs on them and the summary shows them.
        notes: remarks that reject nothing (a mean rounded to the storage type, say).
        inaccurate: set where the result is within the limit and misses the grade: what was missed.
    """

    fault: Fault | None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    notes: frozenset[str] = frozenset()
    inaccurate: str = ""


@dataclass(frozen=True)
class Operator:
    """One function under test.

    Attributes:
        name: as reports call it.
        reference: file with the eager ``Model``.
        shipped: file with the kernel that ships with the project.
        init: arguments of ``Model`` and ``ModelNew``.
        assess: the oracle: (input values, output values), both contiguous and of one shape and dtype.
        scale_invariant: f(c x) = f(x).
        odd: f(-x) = -f(x).
        gradient: of (input, what flows into the result): what flows back, as float64, and how far it may be off.
        idempotent: f(f(x)) = f(x).
        sums_to_columns: the sizes of a row's results add up to the number of columns.
        spread: by row length and dtype name, how far two right results may be apart, relative to the larger.
    """

    name: str
    reference: Path
    shipped: Path
    init: tuple[object, ...]
    assess: Callable[[torch.Tensor, torch.Tensor], Assessment]
    scale_invariant: bool
    odd: bool
    spread: Callable[[int, str], float]
    gradient: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]] | None = None
    idempotent: bool = False
    sums_to_columns: bool = False


def as_rows(tensor: torch.Tensor) -> npt.NDArray[np.float64]:
    """The tensor as float64 [rows, columns], every value widened exactly."""
    wide = tensor.to(torch.float64)
    rows = wide if wide.dim() == 2 else wide.movedim(1, -1).reshape(-1, wide.shape[1])
    array: npt.NDArray[np.float64] = rows.contiguous().numpy()
    return array
