"""What is examined and what comes out: a property, and the record of its examination; and how one case is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis.strategies import SearchStrategy

from . import coverage
from .cases import DTYPE_FEATURES, Case
from .findings import Finding
from .gpu import GpuGoneError
from .memory import OutOfMemoryError
from .operators import Metric, Operator
from .profiles import Profile
from .strategies import Domain
from .subject import Subject
from .trial import NotRunError, StopError, Trial, UnsupportedError


@dataclass(frozen=True)
class Property:
    """One promise, and how it is checked.

    Attributes:
        name: short, as replay lines and reports use it.
        promise: one sentence.
        cases: the strategy, for what a candidate supports; None where only the pinned cases are run.
        check: runs and judges one case; it raises `StopError` through `Trial.report`.
        pinned: cases that are always run.
        pinned_on_gpu: those that are on a GPU besides.
        long: whether one example is about a million elements (its own budget of examples).
        targets: where it can be checked.
        promised: name of `subject.PROMISES` that makes a failure reject; "" for what every candidate must keep.
        applies: whether the operator has this property.
    """

    name: str
    promise: str
    cases: Callable[[Domain, Profile], SearchStrategy[Case]] | None
    check: Callable[[Trial, Case], None]
    pinned: tuple[Case, ...] = ()
    pinned_on_gpu: tuple[Case, ...] = ()
    long: bool = False
    targets: tuple[str, ...] = ("cpu", "cuda")
    promised: str = ""
    applies: Callable[[Operator], bool] = lambda _: True


@dataclass
class Worst:
    """The worst value of a metric, and the case it was seen on."""

    metric: Metric
    case: Case


@dataclass
class Examination:
    """What came out.

    Attributes:
        property: which.
        outcome: ``passed``, ``failed``, ``not-examined`` or ``reported`` (failed, and only told).
        examples: cases judged.
        unsupported: cases the candidate refused and may refuse.
        findings: of the smallest failing case.
        case: the smallest failing case.
        worst: by metric and dtype, ``scaling error / u, fp32``.
        notes: with the number of cases they were made on.
        not_run: cases that memory did not suffice for, with the words.
        drawn: how many of the cases that were judged are of each kind and class (`coverage.CLASSES`).
        reason: why it was not examined.
    """

    property: Property
    outcome: str = "passed"
    examples: int = 0
    unsupported: int = 0
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    case: Case | None = None
    worst: dict[str, Worst] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    drawn: Counter[tuple[str, str]] = field(default_factory=Counter)
    reason: str = ""


def one_call(trial: Trial, case: Case) -> None:
    """The plainest check: one call is judged, with nothing around it."""
    trial.check(trial.build(case))


def run_case(
    subject: Subject,
    prop: Property,
    case: Case,
    *,
    timeout: float | None = None,
    slack: int = 0,
    result: Examination | None = None,
) -> Trial:
    """Run and judge one case; findings stand in the trial, and counts go to ``result`` where one is given."""
    trial = Trial(subject, case, timeout, slack)
    try:
        with subject.runner.watched():
            prop.check(trial, case)
    except StopError:
        pass
    except (NotRunError, OutOfMemoryError, GpuGoneError) as error:
        if result is not None:
            result.not_run[str(case)] = str(error)
        return trial
    except UnsupportedError:
        if result is not None:
            result.unsupported += 1
            _count_notes(trial, result)
        return trial
    if result is not None:
        result.examples += 1
        result.drawn.update(coverage.classes(case))
        for name, metric in trial.metrics.items():
            label = f"{name}, {DTYPE_FEATURES[case.dtype]}"
            known = result.worst.get(label)
            if known is None or metric.value > known.metric.value:
                result.worst[label] = Worst(metric, case)
        _count_notes(trial, result)
    return trial


def _count_notes(trial: Trial, result: Examination) -> None:
    for note in trial.notes:
        result.notes[note] = result.notes.get(note, 0) + 1
