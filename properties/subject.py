"""A candidate on one target: who is judged, what it supports, and what it must.

Probing comes first: one small contiguous float32 matrix decides whether the candidate can be judged at all, then one
small case a feature finds the domain it supports. A probe judges no values; it only sees whether the candidate answers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import inputs
from .build_place import NoPlaceError
from .cases import FEATURES, Case, features
from .findings import Finding, Kind
from .gpu import GpuGoneError
from .layouts import Layout
from .limits import Limits
from .memory import OutOfMemoryError
from .observation import Observation, Outcome
from .operators import Operator
from .replies import LoadFailure
from .runner import Runner
from .strategies import Domain

#: What ``--require`` may name: parts of the domain, and promises beyond the values.
PROMISES = (
    "accuracy",
    "determinism",
    "strides",
    "errors",
    "stream",
    "devices",
    "graph",
    "threads",
    "autograd",
    "autocast",
    "compile",
)
REQUIRABLE = (*FEATURES, *PROMISES)
#: Without these no candidate is accepted.
COMPULSORY = frozenset({"fp32"})

#: The smallest case that shows each feature.
PROBES = {
    "fp16": Case((2, 33), "float16"),
    "bf16": Case((2, 33), "bfloat16"),
    "fp64": Case((2, 33), "float64"),
    "offset": Case((2, 33), layout=Layout(offset=1)),
    "strided": Case((3, 5), layout=Layout(order=(1, 0))),
    "expanded": Case((3, 5), layout=Layout(expand=(0,))),
    "negated": Case((2, 33), layout=Layout(negated=True)),
    "nd": Case((2, 5, 3)),
    "empty": Case((0, 5)),
}
FIRST_PROBE = Case((2, 33))
#: Seconds for a probe after one has hung.
_IMPATIENT = 2.0


#: What results and times are compared with. Other functions a library may replace where it is imported, as some do.
_JUDGES = re.compile(
    r"(torch|torch\.Tensor|numpy)\.(allclose|isclose|equal|array_equal|array_equiv)$|(torch|numpy)\.testing\."
    r"|builtins\.(all|abs)$|time\.(time|perf_counter|monotonic|process_time)(_ns)?$"
    r"|torch\.cuda\.(synchronize$|Event\.|Stream\.)"
)


@dataclass
class Subject:
    """One candidate on one target.

    Attributes:
        path: the candidate's file.
        target: ``cpu`` or ``cuda``.
        operator: what it is to compute.
        shipped: whether it is the project's own kernel, which keeps every promise of the project.
        required: names of `REQUIRABLE` that are compulsory for it.
        limits: time limits.
        runner: how it is run.
        supported, unsupported: the domain, the latter with the candidate's own words; set by `probe`.
        broken: why it cannot be judged at all; set by `probe`.
        hung: names of properties under which it hung.
        died: names of properties under which it died in any way.
        refusals: by promise, how often in a row it has refused a manner of calling it.
        idle: whether its first result held the same in every element, of an input that does not; set by `probe`.
    """

    path: Path
    target: str
    operator: Operator
    shipped: bool
    required: frozenset[str]
    limits: Limits
    runner: Runner
    supported: frozenset[str] = frozenset()
    unsupported: dict[str, str] = field(default_factory=dict)
    broken: Finding | None = None
    hung: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    idle: bool = False
    _probed: bool = False
    _hung: bool = False
    _elsewhere: dict[str, Subject] = field(default_factory=dict)

    @property
    def home(self) -> str:
        """Where its inputs are made, as torch names it; known once it was probed."""
        return self.runner.home

    @property
    def domain(self) -> Domain:
        """What strategies may draw."""
        return Domain(self.supported)

    def on(self, device: str) -> Subject:
        """The same candidate on another device, in a worker of its own that ends with this one's."""
        if device not in self._elsewhere:
            self._elsewhere[device] = replace(self, runner=self.runner.on(device))
        return self._elsewhere[device]

    def renew(self) -> None:
        """End its workers on every device, so that the next call meets a fresh one."""
        for subject in (self, *self._elsewhere.values()):
            subject.runner.renew()

    def close(self) -> None:
        """End all its workers."""
        for subject in (self, *self._elsewhere.values()):
            subject.runner.close()

    def compulsory(self, case: Case) -> bool:
        """Whether the candidate must answer this case."""
        return features(case) <= self.required | COMPULSORY

    def probe(self) -> Finding | None:
        """Load the candidate and find its domain; the finding that ends judging, or None. Works once."""
        if not self._probed:
            self._probed = True
            try:
                with self.runner.watched():
                    self.broken = self._first_contact()
                    if self.broken is None:
                        self.supported = frozenset(
                            {"fp32"} | {name for name, case in PROBES.items() if self._supports(name, case)}
                        )
            except OutOfMemoryError as short:
                self.broken = Finding(Kind.NOT_RUN, f"what it supports could not be found out: {short}")
            except GpuGoneError as gone:
                kind = Kind.TIMEOUT if self._hung else Kind.CRASH
                self.broken = Finding(kind, f"what it supports could not be found out: {gone}")
        return self.broken

    def pass_over(self, why: Finding) -> None:
        """Say why it is not judged, before anything of it was run."""
        self._probed, self.broken = True, why

    def _first_contact(self) -> Finding | None:
        try:
            failure = self.runner.load()
        except (GpuGoneError, NoPlaceError) as lacking:
            return Finding(Kind.NOT_RUN, str(lacking))  # before anything of this candidate was judged
        if failure is not None:
            return load_finding(failure)
        if judges := list(filter(_JUDGES.match, self.runner.replaced)):
            text = f"to import it replaces {', '.join(judges)}, by which programs tell right from wrong, or how long"
            return Finding(Kind.STATE_LEAK, text)
        seen = self.runner.observe(inputs.build(FIRST_PROBE, self.home), first=True)
        try:
            self._insist_on_room(seen)
        except NoPlaceError as full:
            return Finding(Kind.NOT_RUN, str(full))
        if seen.outcome in (Outcome.DIED, Outcome.TIMED_OUT):
            assert seen.death is not None
            kind = Kind.TIMEOUT if seen.outcome is Outcome.TIMED_OUT else Kind.CRASH
            return Finding(kind, f"{seen.death.cause} at the very first call ({FIRST_PROBE})", seen.death.log)
        if seen.outcome is Outcome.RAISED:
            assert seen.error is not None
            details = tuple(seen.error.text.strip().splitlines()[1:])
            if seen.error.building:
                return Finding(Kind.DOES_NOT_BUILD, f"its extension does not build: {seen.error}", details)
            text = f"raises {seen.error} on a contiguous float32 matrix, which every candidate must take"
            return Finding(Kind.UNSUPPORTED, text, details)
        if seen.output is not None:
            found = inputs.bits(seen.output).flatten()
            self.idle = bool((found == found[0]).all())
        return None

    def _insist_on_room(self, seen: Observation) -> None:
        """Where the first call fails, see whether that is because nothing could be built.

        Raises:
            NoPlaceError: it is.
        """
        if seen.error is not None:
            self.runner.insist_on_room(seen.error.text, broken=seen.error.building)
        elif seen.outcome is Outcome.DIED and seen.death is not None:
            self.runner.insist_on_room("\n".join(seen.death.log), broken=True)

    def _supports(self, name: str, case: Case) -> bool:
        given = inputs.build(case, self.home)
        # One that hung will be found to hang: its other features get no time to compile, or probing takes minutes.
        seen = self.runner.observe(given, timeout=_IMPATIENT) if self._hung else self.runner.observe(given, first=True)
        self._hung |= seen.outcome is Outcome.TIMED_OUT
        if seen.outcome is Outcome.RAISED:
            self.unsupported[name] = str(seen.error)
            return False
        return True


def load_finding(failure: LoadFailure) -> Finding:
    """The finding for a candidate that does not load."""
    kind = Kind.TIMEOUT if failure.timed_out else Kind.DOES_NOT_BUILD
    return Finding(kind, failure.text, failure.details)
