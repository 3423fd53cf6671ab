"""One case of one property: run the candidate on what the property builds, and collect what the judge says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from . import inputs, judge, layouts
from .cases import Case
from .findings import DEADLY, Finding, Kind
from .inputs import Input
from .manner import PLAIN, Manner
from .observation import Observation, Outcome
from .operators import Metric
from .protocol import Way
from .subject import Subject, load_finding

#: An input from this size on may well not fit: running out of memory is then no fault of the candidate.
_LARGE = 1 << 28
#: Copies of a tensor that one call needs: input and slot, the candidate's result and its slot; and on a CPU a copy of
#: the result, and what the candidate takes besides. On a GPU that is the candidate's to say: it may need nothing. Half
#: of them are as long as the input's storage, gaps included, half as its elements.
_COPIES = {"cpu": 6, "cuda": 4}

#: Refusals in a row after which nobody asks again: on a GPU each may cost a worker.
_REFUSALS = 3


class UnsupportedError(Exception):
    """The candidate refused the input and may do so: the case says nothing about it."""


class NotRunError(Exception):
    """The case needs more memory than there is: nothing is said about the candidate."""


class StopError(Exception):
    """A call failed in a way that makes the rest of the case pointless; its findings stand in the trial."""


@dataclass
class Trial:
    """Collects findings, metrics and notes of one case.

    Attributes:
        subject: who is judged.
        case: on what.
        timeout: seconds a call may take; None for the subject's own limit.
        slack: see `Runner.observe`.
    """

    subject: Subject
    case: Case
    timeout: float | None = None
    slack: int = 0
    findings: list[Finding] = field(default_factory=list)
    metrics: dict[str, Metric] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)

    def build(self, case: Case) -> Input:
        """The input of a case, on the subject's target.

        Raises:
            NotRunError: memory will not suffice for all that a call takes.
            OutOfMemoryError: it does not suffice for the input.
        """
        home = self.subject.home
        storage = layouts.geometry(case.layout, case.shape).length
        nbytes = max(case.numel, storage) * getattr(torch, case.dtype).itemsize
        if nbytes >= _LARGE:
            both = (case.numel + storage) * getattr(torch, case.dtype).itemsize
            needed, free = _COPIES[torch.device(home).type] // 2 * both, self.subject.runner.free_bytes()
            if free is not None and needed > free:
                where = "" if home == "cpu" else " on the GPU"
                raise NotRunError(f"needs {needed / 2**30:.1f} GiB{where}, have {free / 2**30:.1f} GiB")
        return inputs.build(case, home)

    def elsewhere(self, device: str) -> Trial:
        """A trial of the same candidate on another device, whose findings and metrics are this one's, too."""
        subject = self.subject.on(device)
        failure = subject.runner.load()
        if failure is not None:
            self.report(load_finding(failure))
        return replace(self, subject=subject)

    def place(self, case: Case, logical: torch.Tensor) -> Input:
        """Values of the property's own, laid out as the case says."""
        return inputs.place(case, logical)

    def check(self, given: Input) -> torch.Tensor:
        """Call the candidate and judge the result; returns its values.

        Raises:
            UnsupportedError: the candidate refused an input that it need not take.
            StopError: there is a finding.
        """
        seen = self.observe(given)
        self.verdict(given, seen)
        assert seen.output is not None
        return seen.output

    def observe(self, given: Input, keep: str = "", *, manner: Manner = PLAIN) -> Observation:
        """Call the candidate as `Runner.observe` does; nothing is judged.

        Raises:
            NotRunError: memory did not suffice in the worker.
            OutOfMemoryError: nor here.
            GpuGoneError: the GPU does not answer any more.
        """
        # Dynamo alone takes seconds to be imported; and what an instance builds it builds at its first call.
        first = manner.way is Way.COMPILED or bool(manner.instance)
        seen = self.subject.runner.observe(
            given, timeout=self.timeout, keep=keep, slack=self.slack, first=first, manner=manner
        )
        if (
            seen.error is not None
            and given.nbytes >= _LARGE
            and {"OutOfMemoryError", "MemoryError"} & {*seen.error.bases}
        ):
            raise NotRunError(f"the candidate runs out of memory: {seen.error}")
        return seen

    def keep(self, given: Input, name: str) -> None:
        """Call the candidate and leave its result with it, for `Runner.collect`; judged at once where there is none.

        Raises:
            UnsupportedError, StopError: as `check` does.
        """
        seen = self.observe(given, keep=name)
        if seen.outcome is not Outcome.RETURNED:
            self.verdict(given, seen)

    def spare(self, promise: str, refusal: str) -> None:
        """End a case that needs a manner of calling which the candidate has refused `_REFUSALS` times in a row.

        Raises:
            UnsupportedError: it has, and may.
        """
        if self.subject.refusals[promise] >= _REFUSALS and promise not in self.subject.required:
            raise UnsupportedError(refusal)

    def attempt(self, given: Input, promise: str, manner: Manner, refusal: str) -> Observation:
        """Call in a manner that a candidate may refuse with an error, unless it has made the promise not to.

        Args:
            given: the input.
            promise: name of `subject.PROMISES`.
            manner: how it is called.
            refusal: what an error is then called, in words.

        Raises:
            UnsupportedError: it refused.
            StopError: it refused and may not.
        """
        refusals = self.subject.refusals
        seen = self.observe(given, manner=manner)
        if seen.outcome is not Outcome.RAISED or seen.damage:
            refusals[promise] = 0
            return seen
        refusals[promise] += 1
        words = f"{refusal}: {seen.error}"
        if promise in self.subject.required:
            self.report(Finding(Kind.UNSUPPORTED, words))
        self.notes.add(words)
        raise UnsupportedError(words)

    def verdict(self, given: Input, seen: Observation, when: str = "") -> None:
        """Judge an observation; raises as `check` does.

        Args:
            given: the input.
            seen: what was observed.
            when: how the call was made, if not plainly: findings begin with it.
        """
        said = judge.judge(given, seen, self.subject.operator, self.subject.required)
        # Of a case that calls with other types besides, its line names one alone.
        other = "" if given.dtype == self.case.dtype else f"given {given.dtype}"
        prefix = "".join(f"{words}: " for words in (when, other) if words)
        if said.unsupported:
            if not self.subject.compulsory(self.case):
                raise UnsupportedError(said.unsupported)
            refused = judge.refusal(said.unsupported, self.case)
            self.report(replace(refused, text=f"{prefix}{refused.text}"))
        self.notes |= said.notes
        for name, metric in ({} if other else said.metrics).items():
            known = self.metrics.get(name)
            if known is None or metric.value > known.value:
                self.metrics[name] = metric
        if said.findings:
            self.report(*(replace(finding, text=f"{prefix}{finding.text}") for finding in said.findings))

    def report(self, *findings: Finding) -> None:
        """Add findings and end the case."""
        self.findings += findings
        raise StopError

    @property
    def deadly(self) -> bool:
        """Whether a finding ended the worker."""
        return any(finding.kind in DEADLY for finding in self.findings)
