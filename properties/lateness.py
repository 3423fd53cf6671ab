"""Whether a result that was not written when the call returned is written later, as by a thread that goes on.

"Never written" is more than one look can know, and so is "given out again, or never written", as it is said of a GPU.
So the case that is reported is called once more, its result is kept, and looked at again and again for a while; only
what was seen to be written behind the call is called late.
"""

from __future__ import annotations

import time
from dataclasses import replace

from . import judge
from .cases import Case
from .findings import Finding, Kind
from .gpu import GpuGoneError
from .memory import OutOfMemoryError
from .observation import Outcome
from .subject import Subject
from .trial import NotRunError, Trial

#: Seconds that a result is looked at behind the call, and between two looks. A choice: a thread that writes later than
#: that is as good as none, and every failing property of a program that writes nothing waits as long.
_PATIENCE = 0.5
_LOOK_AGAIN = 0.05
_KEPT = "late"


def told(subject: Subject, case: Case, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings of a case; what was called never written is called late where that is seen."""
    first, *others = findings
    if not _maybe_unwritten(first) or not _written_later(Trial(subject, case)):
        return findings
    text = first.text.replace("no element is ever written", "every element is never written")
    for words in (judge.AGAIN_OR_UNWRITTEN, "never written"):
        text = text.replace(words, "written later than the call returns")
    return (replace(first, kind=Kind.NOT_WRITTEN, text=text), *others)


def _maybe_unwritten(finding: Finding) -> bool:
    return finding.kind is Kind.NOT_WRITTEN or finding.text.startswith(judge.AGAIN_OR_UNWRITTEN)


def _written_later(trial: Trial) -> bool:
    """Whether a result of the case is seen without something when the call returns, and with all of it afterwards."""
    runner = trial.subject.runner
    try:
        with runner.watched():
            given = trial.build(trial.case)
            if trial.observe(given, keep=_KEPT).outcome is not Outcome.RETURNED:
                return False
            end = time.monotonic() + _PATIENCE
            missing = False
            while time.monotonic() < end:
                seen = runner.collect(_KEPT, given)
                if seen.outcome is not Outcome.RETURNED:
                    return False
                said = judge.judge(given, seen, trial.subject.operator, frozenset())
                unwritten = any(_maybe_unwritten(finding) for finding in said.findings)
                if missing and not unwritten:
                    return True
                missing |= unwritten
                time.sleep(_LOOK_AGAIN)
            return False
    except (NotRunError, OutOfMemoryError, GpuGoneError):
        return False
    finally:
        runner.forget()
