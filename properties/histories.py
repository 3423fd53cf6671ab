"""What came before a call must not matter, and what comes after must not change its result."""

from __future__ import annotations

import torch

from . import comparisons, judge, strategies
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .inputs import Input
from .observation import Outcome
from .trial import StopError, Trial

#: A candidate may hand out a few buffers in turn: an earlier result must outlive more calls than there are buffers.
#: A case's turn asks for more calls than these.
_LATER_CALLS = 9

#: Calls behind the first; a case's turn asks for more.
_REPEATS = 3


def history(trial: Trial, case: Case) -> None:
    """Two inputs at one address; the first result is looked at only after several calls on the second."""
    first = trial.build(case)
    second = trial.build(Case(case.shape, case.dtype, case.layout, case.values, case.seed + 1))
    runner = trial.subject.runner
    early = trial.observe(first, keep="early")
    if early.outcome is not Outcome.RETURNED:
        trial.verdict(first, early)
    for _ in range(max(_LATER_CALLS, case.turn) - 1):
        seen = trial.observe(second)
        if seen.outcome is not Outcome.RETURNED:
            trial.verdict(second, seen)
    late = trial.observe(second)
    try:
        trial.verdict(second, late)
    except StopError:
        _explain_stale(trial, first, late.output)
        raise
    kept = runner.collect("early", first)
    runner.forget()
    said = judge.judge(first, kept, trial.subject.operator, trial.subject.required)
    if said.findings:
        trial.check(first)
        text = "an earlier result is no longer right after a later call"
        if kept.output is not None and trial.subject.operator.assess(second.logical, kept.output).fault is None:
            text = "an earlier result holds that of a later call: both lie in the same memory"
        trial.report(Finding(Kind.ALIASED_OUTPUT, text, said.findings[0].details))
    trial.check(first)


def _explain_stale(trial: Trial, first: Input, output: torch.Tensor | None) -> None:
    """Say so, if what came for the second input is right for the first."""
    if output is None or trial.subject.operator.assess(first.logical, output).fault is not None:
        return
    text = "gives the result of an earlier call, though other data lie at the same address"
    trial.findings[:] = [Finding(Kind.STALE_RESULT, text, trial.findings[-1].details)]


def repeated(trial: Trial, case: Case) -> None:
    """The same input again and again; the first result is judged, the others are compared with it bit for bit."""
    given = trial.build(case)
    first = trial.check(given)
    for _ in range(max(_REPEATS, case.turn)):
        seen = trial.observe(given)
        if seen.outcome is not Outcome.RETURNED or seen.damage or seen.output is None:
            trial.verdict(given, seen)
        if seen.output is not None and not bool(comparisons.same_bits(first, seen.output).all()):
            trial.verdict(given, seen)
            trial.report(Finding(Kind.NONDETERMINISTIC, "the same call on the same input gives other bits"))


HISTORY = Property(
    "history",
    "New data at an old address give a new result, and earlier results stay right after later calls.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 14, layouts=True),
    history,
    pinned=(parse("shape=4x257,seed=11,turn=150"), parse("shape=64x1024,seed=11")),
)


REPEATED = Property(
    "determinism",
    "The same call gives the same bits.",
    lambda domain, _: strategies.cases(domain, ("signed", "heavy"), layouts=True),
    repeated,
    pinned=(
        parse("shape=2000x1000,values=row-scales,seed=12"),
        parse("shape=1x262144,values=heavy,seed=12"),
        # Shared scratch reused too early by a block's next row: neighbours differ by powers of ten, and many try.
        parse("shape=4000x1000,values=row-scales,seed=12,turn=20"),
    ),
    promised="determinism",
)
