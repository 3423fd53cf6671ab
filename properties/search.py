"""The search for the smallest case that fails, and what is said of it.

What is ours here is what a foreign, possibly deadly program asks for on top of Hypothesis:

- a failing case is remembered, so a result that changes between calls cannot confuse the search;
- a failing case is first reduced by bisection (`reduction`), then Hypothesis shrinks what it drew;
- looking for a smaller case ends after a budget of time and of dead workers;
- a candidate whose calls take seconds is shown fewer cases, which is told;
- once a call has hung, the search waits only `HANG_FACTOR` times as long as an ordinary call took;
- the case that is reported is run once more in a fresh worker, with the full time limit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from . import lateness
from .cases import Case
from .examination import Examination, Property, one_call, run_case
from .findings import DEADLY, Finding, Kind
from .operators import Metric
from .profiles import Profile
from .reduction import reduce, size
from .subject import Subject
from .trial import Trial

#: A hung call is recognised while shrinking after this many times the longest ordinary call, and never below
#: `_SHORTEST_WAIT` seconds: a slow machine must not turn an honest call into a hang.
HANG_FACTOR = 50
_SHORTEST_WAIT = 2.0
#: Bytes between an input and the forbidden page when a crash is tried again: what survives this read past its input.
_SLACK = 1 << 20
#: Elements of a failing case below which nobody looks for a smaller one.
_SMALL = 16
#: Runs of a case that failed once, to see whether it fails at times or only after other calls.
_REPEATS = 20
#: Findings that a larger case tells better, and its rows and columns: see `telling`.
_TOLD_BETTER = (Kind.WRONG_VALUE, Kind.WRONG_SPECIAL, Kind.NOT_WRITTEN, Kind.ALIASED_OUTPUT)
_TELLING = (5, 301)
_MOST_TELLING = 1 << 19
#: Properties under which a candidate died, from which on one death more ends a search.
_DEAD_PROPERTIES = 3

#: By promise, the kinds that say it is not kept: they are only told of a candidate that has not made it. Whatever else
#: such a property comes upon rejects as it does everywhere.
_TOLD = {
    "stream": frozenset({Kind.WRONG_STREAM}),
    "devices": frozenset(Kind),
    "graph": frozenset(Kind),
    "threads": frozenset(Kind),
    "compile": frozenset(Kind),
    "autograd": frozenset({Kind.WRONG_GRADIENT}),
    "autocast": frozenset({Kind.WRONG_DTYPE, Kind.WRONG_VALUE, Kind.WRONG_SPECIAL}),
    "determinism": frozenset({Kind.NONDETERMINISTIC}),
    "errors": frozenset({Kind.WRONG_ERROR, Kind.ACCEPTED_INVALID_INPUT}),
    "negated": frozenset({Kind.WRONG_VALUE, Kind.WRONG_SPECIAL}),
}


class RefutedError(Exception):
    """A case failed; subclasses by kind let Hypothesis keep different faults apart while it shrinks."""


_REFUTED = {kind: type(f"Refuted_{kind.name}", (RefutedError,), {}) for kind in Kind}


class Search:
    """The state of one examination.

    Attributes:
        subject, profile: who is examined, and how thoroughly.
        exactly: whether what fails is told in its own words, and no other case is run for better ones.
        result: what came out so far.
        longest_call: of an ordinary call, in seconds.
    """

    def __init__(self, subject: Subject, prop: Property, profile: Profile, exactly: bool = False) -> None:
        self.subject = subject
        self.profile = profile
        self.exactly = exactly
        self.result = Examination(prop)
        self.longest_call = 0.0
        self._failed: dict[Case, tuple[Finding, ...]] = {}
        self._first: Case | None = None
        self._first_at = 0.0
        self._deaths = 0
        self._called_before = subject.runner.called
        self._hung = False
        self._repeats = True

    def run(self, case: Case) -> Mapping[str, Metric]:
        """Run one case; raises `RefutedError` where it fails, returns its metrics where it passes or says nothing."""
        known = self._failed.get(case)
        if known is None:
            if self._spent():
                return {}
            trial = self._trial(case)
            if not trial.findings:
                return trial.metrics
            known = self._failed[case] = tuple(trial.findings)
            self._deaths += trial.deadly
            self._hung |= any(finding.kind is Kind.TIMEOUT for finding in known)
            if self._first is None:
                self._first, self._first_at = case, time.monotonic()
                self._reduce(case, known[0].kind)
        raise _REFUTED[known[0].kind](str(case))

    def conclude(self) -> Examination:
        """Confirm the smallest failing case in a fresh worker and write down what stands."""
        result = self.result
        if not self.refuted:
            return result
        chosen = min(self._failed, key=size)
        if self.subject.runner.gone:
            findings = self._unconfirmed(chosen)
        else:
            chosen, findings = self._confirmed(chosen)
        result.findings, result.case, result.outcome = findings, chosen, "failed"
        promised = result.property.promised
        told = _TOLD.get(promised, frozenset())
        # What comes and goes is told by what it is when it comes.
        shown = findings if self._repeats else self._failed[chosen]
        if promised not in self.subject.required and all(finding.kind in told for finding in shown):
            plain = self._plainly_wrong(chosen)
            result.findings, result.outcome = (plain, "failed") if plain else (findings, "reported")
        if any(finding.kind is Kind.TIMEOUT for finding in findings):
            self.subject.hung.append(result.property.name)
        if self._deaths:
            self.subject.died.append(result.property.name)
        return result

    def _confirmed(self, chosen: Case) -> tuple[Case, tuple[Finding, ...]]:
        """The case to report and what stands of it, once it was run in a fresh worker."""
        for case in dict.fromkeys((chosen, self._first)):
            assert case is not None
            findings = self._confirm(case)
            if findings:
                case, findings = self._in_telling_words(case, findings)
                return case, lateness.told(self.subject, case, findings)
        return chosen, self._unrepeated(chosen)

    def _plainly_wrong(self, case: Case) -> tuple[Finding, ...]:
        """What is wrong in one call on this input, with nothing around it: that breaks no promise, it is wrong."""
        if self.subject.runner.gone:
            return ()
        self.subject.renew()
        plain = replace(case, layout=replace(case.layout, negated=False))
        return tuple(run_case(self.subject, replace(self.result.property, check=one_call), plain).findings)

    @property
    def refuted(self) -> bool:
        """Whether a case failed."""
        return self._first is not None

    @property
    def small_enough(self) -> bool:
        """Whether a case failed that is so small that no smaller one could tell more."""
        return any(case.numel <= _SMALL for case in self._failed)

    def _reduce(self, case: Case, kind: Kind) -> None:
        """Look for a smaller case that fails in the same way; what is found joins the failed ones."""

        def fails(smaller: Case) -> bool:
            try:
                self.run(smaller)
            except RefutedError:
                return self._failed[smaller][0].kind is kind
            return False

        reduce(case, fails)

    def _unconfirmed(self, case: Case) -> tuple[Finding, ...]:
        """The GPU went away: what was found before stands, and cannot be confirmed."""
        first, *others = self._failed[case]
        details = (*first.details, f"{self.subject.runner.gone}: this case could not be run again")
        return (replace(first, details=details), *others)

    def _in_telling_words(self, case: Case, findings: tuple[Finding, ...]) -> tuple[Case, tuple[Finding, ...]]:
        """The findings in the words of a larger case that fails in the same way: one column tells no cause.

        An input that is its own result hides that it was written: there the larger case is the one to report.
        """
        kind = findings[0].kind
        if self.exactly or kind not in _TOLD_BETTER:
            return case, findings
        for larger in telling(case):
            seen = run_case(self.subject, self.result.property, larger).findings
            if seen and seen[0].kind is kind:
                text = f"{seen[0].text} (seen at {'x'.join(map(str, larger.shape))})"
                details = (*findings[0].details, f"in words for a larger case that fails, too: {larger}")
                return case, (replace(findings[0], text=text, details=details), *findings[1:])
            if kind is Kind.ALIASED_OUTPUT and seen and seen[0].kind is Kind.INPUT_MODIFIED:
                return larger, tuple(seen)
        return case, findings

    def _unrepeated(self, case: Case) -> tuple[Finding, ...]:
        """What to say of a case that failed and passes in a fresh process."""
        self._repeats = False
        first = self._failed[case][0]
        if first.kind is Kind.WRONG_STREAM:  # a race: on a busy card the other stream may be late enough to be right
            details = (*first.details, "it does not show in every run of this case: the streams race each other")
            return (replace(first, details=details),)
        if first.kind not in DEADLY:
            self.subject.renew()  # it has been given another case
            trials = [run_case(self.subject, self.result.property, case) for _ in range(_REPEATS)]
            failed = [trial.findings[0] for trial in trials if trial.findings]
            if len(failed) == _REPEATS - 1 and not trials[0].findings:
                text = f"right at the first call, wrong when called again: {failed[0].text}"
                return (Finding(Kind.STATE_LEAK, text, failed[0].details),)
            if failed:
                text = f"fails in {len(failed)} of {_REPEATS} identical runs: {failed[0].text}"
                return (Finding(Kind.NONDETERMINISTIC, text, failed[0].details),)
        # A program that takes so many shapes and no more leaves nothing behind: it refuses.
        kind = first.kind if first.kind in (*DEADLY, Kind.UNSUPPORTED) else Kind.STATE_LEAK
        details = (*first.details, "in a fresh process this case passes: what came before it must be run, too")
        # The cause that the words name is a guess here: what stands there may be another call's.
        return (Finding(kind, f"fails only after other calls, and then: {first.text}", details),)

    def _spent(self) -> bool:
        if self.subject.runner.gone:
            return True
        if not self.refuted:
            return self._too_slow()
        deaths = self.profile.deaths if len(self.subject.died) < _DEAD_PROPERTIES else 1
        return self._deaths >= deaths or time.monotonic() - self._first_at > self.profile.shrink_seconds

    def _too_slow(self) -> bool:
        """Whether the candidate has had its time; a case that is left out for that is counted."""
        if self.subject.runner.called - self._called_before <= self.profile.call_seconds:
            return False
        note = f"left out, as its calls under a property had taken {self.profile.call_seconds:g} s"
        self.result.notes[note] = self.result.notes.get(note, 0) + 1
        return True

    def _trial(self, case: Case) -> Trial:
        began = time.monotonic()
        wait = None
        if self._hung:
            wait = min(self.subject.limits.call, max(_SHORTEST_WAIT, HANG_FACTOR * self.longest_call))
        trial = run_case(self.subject, self.result.property, case, timeout=wait, result=self.result)
        if not trial.findings:
            self.longest_call = max(self.longest_call, time.monotonic() - began)
        return trial

    def _confirm(self, case: Case) -> tuple[Finding, ...]:
        self.subject.renew()
        trial = run_case(self.subject, self.result.property, case)
        if any(finding.kind is Kind.CRASH for finding in trial.findings):
            roomy = run_case(self.subject, self.result.property, case, slack=_SLACK)
            if not any(finding.kind is Kind.CRASH for finding in roomy.findings):
                text = (
                    "reads or writes past the end of its input: it dies where nothing lies behind, lives where bytes do"
                )
                return (Finding(Kind.OUT_OF_BOUNDS, text, trial.findings[0].details),)
        return tuple(trial.findings)


def telling(case: Case) -> list[Case]:
    """Larger cases of the same dtype and layout whose failure says more than that of a case of few elements.

    Their rows are of no round length, start at every 16-byte phase and have means of their own.
    """
    rows, columns = _TELLING
    if case.numel == 0 or (case.shape[0] >= rows and case.columns >= columns):
        return []
    columns = max(columns, case.columns)
    if rows * columns * (case.numel // (case.shape[0] * case.columns)) > _MOST_TELLING:
        return []
    larger = replace(case, shape=(rows, columns, *case.shape[2:]))
    recipes = dict.fromkeys(("signed", "row-scales", "integers", case.values))
    return [replace(larger, values=recipe) for recipe in recipes]
