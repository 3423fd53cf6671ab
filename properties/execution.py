"""On a GPU: what is queued ahead of a call is waited for, what is queued behind it waits, and on any card.

A stream is the order in which a GPU does its work. A call returns before its work is done, and often before its input
is there: the operation that writes the input may still be queued. A program that uses another stream than the current
one without waiting reads what the input held before, or hands out a result that is not there yet. On an idle card with
an input that lies ready nobody can tell.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from . import memcheck, strategies
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .manner import Manner
from .trial import NotRunError, StopError, Trial


def late(trial: Trial, case: Case) -> None:
    """The input is written by work that is still queued, on the usual stream, when the call is made."""
    _late(trial, case, side=False)


def late_on_side_stream(trial: Trial, case: Case) -> None:
    """As `late`, while another stream is the current one."""
    _late(trial, case, side=True)


def _late(trial: Trial, case: Case, side: bool) -> None:
    before, given = trial.build(replace(case, seed=case.seed + 1)), trial.build(case)
    trial.check(before)  # what is loaded and allocated at a first call would wait for the card
    seen = trial.observe(given, manner=Manner(before=before, side=side))
    try:
        trial.verdict(given, seen)
        return
    except StopError:
        findings = list(trial.findings)
    if seen.output is None:
        raise StopError
    trial.findings.clear()
    trial.check(given)  # wrong with an input that lies ready, too: then that is what there is to say
    where = "the current stream" if side else "the usual stream"
    text = (
        f"right where its input lies ready, wrong where work queued on {where} is still to write it: {findings[0].text}"
    )
    if trial.subject.operator.assess(before.logical, seen.output).fault is None:
        text = (
            f"gives the result of what its input held before: it does not wait for the work queued on {where}, "
            "which writes the input (its own work is on another stream)"
        )
    trial.report(Finding(Kind.WRONG_STREAM, text, findings[0].details))


def on_second_gpu(trial: Trial, case: Case) -> None:
    """The input lies on the second GPU while the first is current."""
    count = torch.cuda.device_count()
    if count < 2:
        raise NotRunError(f"needs a second GPU, have {count}")
    there = trial.elsewhere("cuda:1")
    # Written late, too: where GPUs reach each other's memory a kernel on the first one may well give the right result.
    late(there, case)


LATE = Property(
    "late-input",
    "The result is made of what the input holds once all work that is queued ahead of the call is done.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), layouts=True),
    late,
    # Large enough that a copy of a result which is still being made is caught at it.
    pinned=(parse("shape=4x257,seed=14"), parse("shape=4096x4096,seed=14")),
    targets=("cuda",),
)

STREAM = Property(
    "stream",
    "The work is done on the stream that is current.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), layouts=True),
    late_on_side_stream,
    pinned=(parse("shape=4x257,seed=14"), parse("shape=4096x4096,seed=14")),
    targets=("cuda",),
    promised="stream",
)

DEVICES = Property(
    "devices",
    "An input on the second GPU gives its result there, and leaves the first GPU current.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed"), layouts=True),
    on_second_gpu,
    pinned=(parse("shape=4x257,seed=15"), parse("shape=2x65535,seed=15"), parse("shape=0x128")),
    targets=("cuda",),
    promised="devices",
)

MEMCHECK = Property(
    "memcheck",
    "No byte outside the input and the result is read or written (compute-sanitizer).",
    None,
    memcheck.fenced,
    pinned=(parse("shape=3x1023,seed=16"),),
    targets=("cuda",),
)
