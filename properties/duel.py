"""Time a candidate against its base on one case, batch by batch, until the statistics decide.

Candidate, base and the copy each have a worker of their own and read the same input. In every round each is timed once
and the copy twice, first and last, so that the machine's unrest is measured beside the effect; rounds alternate between
this order and its reverse. Before every batch everything is prepared anew, in another order. Results of a random round
of every batch, the first on new values, are judged, of both contestants, and results on what differs in a few elements
when the batch is over: who computes something else, or nothing, is not faster, and is no yardstick.

Where the base is a stored run, its place in the round is empty and its fractions of a copy come from the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from ci.gate_record import BUSY, FAILED, INVALID, NO_BASELINE, NO_MEMORY, NOT_MEASURED, SAME, UNDECIDED, Case, Estimate

from . import layouts, protocol, timing, verdicts
from .benchmark_cases import Entry
from .benchmarks import COMPILE_SECONDS, Lineup, buffers
from .timed_input import NOT_RUN, NotMeasuredError, TimedInput
from .timing import BASE, CANDIDATE, COPY
from .verdicts import Rule

#: The copy's second turn of a round; its worker is the same.
AGAIN = "copy again"
#: Seconds that the rounds of a first batch may take, as long as there are `verdicts.LEAST_ROUNDS`.
_BATCH_SECONDS = 5.0
#: Seconds after which no further batch begins: thirty restless cases still end within the hour.
_CASE_SECONDS = 60.0

Tell = Callable[[str], None]


@dataclass
class Batch:
    """The times of one batch, in seconds of a call: one a round, of each in the line."""

    times: dict[str, list[float]]

    @property
    def ratios(self) -> list[float]:
        """Candidate / base, one a round."""
        return _ratio(self.times[CANDIDATE], self.times[BASE]) if BASE in self.times else []

    @property
    def controls(self) -> list[float]:
        """The copy's second turn / its first, one a round."""
        return _ratio(self.times[AGAIN], self.times[COPY])

    def of_copy(self, name: str) -> list[float]:
        """The copy's time / a contestant's, one a round: the two turns of the copy lie around it."""
        copies = [(first + second) / 2 for first, second in zip(self.times[COPY], self.times[AGAIN], strict=True)]
        return _ratio(copies, self.times[name])


@dataclass
class Duel:
    """One case on one lineup.

    Attributes:
        lineup: who takes part; its base is left out where there is none (a stored run).
        name: of the case.
        entry: the case.
        rule: what a verdict takes.
        stored: the base's fractions of a copy, one a round, where it is a stored run.
        tell: told in a few words what is being done.
        after_batch: called when a batch was measured, while the card is still warm (clocks are read then).
        chooser: which round, and which part of its result is looked at; a contestant must not know.
    """

    lineup: Lineup
    name: str
    entry: Entry
    rule: Rule
    stored: Sequence[float] = ()
    tell: Tell = lambda _: None
    after_batch: Callable[[], None] = lambda: None
    chooser: random.Random = field(default_factory=random.SystemRandom)
    _buffers: int = 1
    _calls: int = 1
    _rounds: int = verdicts.ROUNDS
    _spent: float = 0.0

    def run(self) -> Case:
        """Measure until it is decided; what cannot be measured is told in the case, never raised."""
        case = self.entry.case
        shape = "x".join(map(str, case.shape))
        blank = Case(self.name, NOT_MEASURED, shape, case.dtype, str(case.layout))
        try:
            self.tell("making the input")
            given = TimedInput(case, self.lineup.slots())
            blank = replace(blank, bytes=2 * given.nbytes)
            return self._decide(blank, given)
        except NotMeasuredError as error:
            return replace(blank, reason=_reason(str(error)), text=str(error))
        finally:
            self.lineup.rest()

    def _decide(self, blank: Case, given: TimedInput) -> Case:
        said: list[str] = []
        batches: list[Batch] = []
        verdict, over = None, ""
        while verdict is None:
            number = len(batches)
            batches.append(self._batch(number, given))
            wrong = self._impossible(batches[-1], 2 * given.nbytes)
            if wrong:
                raise NotMeasuredError(wrong)
            said.append(self._word(batches[-1]))
            verdict = verdicts.decide(said, self.rule)
            # The next batch takes twice as long as this one.
            if verdict is None and self._spent + 2 * self._seconds(batches[-1]) > _CASE_SECONDS:
                verdict, over = UNDECIDED, f"; another one would take it beyond {_CASE_SECONDS:.0f} s"
        busy = self._shared(batches[-1], 2 * given.nbytes)
        if busy and verdict in (SAME, UNDECIDED):
            raise NotMeasuredError(busy)
        told = "" if verdict != UNDECIDED else f"its batches said: {', '.join(said)}{over}"
        return self._case(blank, verdict, told, batches, batches[-verdicts.deciding(said) :])

    def _case(self, blank: Case, verdict: str, told: str, batches: list[Batch], last: list[Batch]) -> Case:
        """The case with its figures: those of the batches that decided."""

        def pooled(of: Callable[[Batch], list[float]]) -> Estimate:
            return verdicts.estimate([value for batch in last for value in of(batch)], self.rule.confidence)

        def middle(name: str) -> float:
            return median(value for batch in last for value in batch.times[name])

        mine = pooled(lambda batch: batch.of_copy(CANDIDATE))
        if self.stored:
            theirs = verdicts.estimate(self.stored, self.rule.confidence)
            ratio = self._against_stored(last)
        else:
            theirs, ratio = pooled(lambda batch: batch.of_copy(BASE)), pooled(lambda batch: batch.ratios)
        return replace(
            blank,
            verdict=verdict,
            text=told,
            rounds=sum(len(batch.times[CANDIDATE]) for batch in batches),
            ratio=ratio,
            candidate_of_copy=mine,
            base_of_copy=theirs,
            control=pooled(lambda batch: batch.controls),
            candidate_seconds=middle(CANDIDATE),
            base_seconds=None if self.stored else middle(BASE),
            copy_seconds=middle(COPY),
        )

    def _word(self, batch: Batch) -> str:
        if self.stored:
            return verdicts.word_of(self._against_stored([batch]), self.rule)
        found = verdicts.words(np.array([batch.ratios]), np.array([batch.controls]), self.rule)
        return str(found[0])

    def _against_stored(self, batches: list[Batch]) -> Estimate:
        now = [value for batch in batches for value in batch.of_copy(CANDIDATE)]
        return verdicts.between_runs(now, self.stored, self.rule.confidence)

    def _batch(self, number: int, given: TimedInput) -> Batch:
        """Prepare everyone and time the rounds of a batch; results of a random round are judged."""
        who = [CANDIDATE] if self.stored else [CANDIDATE, BASE]
        self.lineup.rest()
        pilots = {}
        for name in [*timing.order(who, number), COPY]:
            self.tell(f"building and warming up the {name}" if number == 0 else f"once more: preparing the {name}")
            pilots[name] = self._warm_up(name, given)
        line = [COPY, *who, AGAIN]
        if number == 0:
            self._plan([pilots.get(name, pilots[COPY]) for name in line])
        rounds = verdicts.rounds_of(number, self._rounds)
        chosen = self.chooser.randrange(rounds)
        times: dict[str, list[float]] = {name: [] for name in line}
        for turn in range(rounds):
            self.tell(f"batch {number + 1}, round {turn + 1} of {rounds}")
            if turn == chosen:
                self.lineup.renew((*who, COPY), given)  # what is left of earlier results is wrong now
            for name in timing.order(line, turn):
                times[name].append(self._time(name, self._calls))
            if turn == chosen:
                for name in who:
                    self._judge(name, given)
                # Judging leaves the card idle: nobody is timed on it just then.
                for name in (*who, COPY):
                    self._time(name, 1)
        self.after_batch()
        self.lineup.renew(who, given, self.chooser)  # who knows inputs again by a sample takes it for the one before
        for name in who:
            self._time(name, self._calls)
            self._judge(name, given)
        made = Batch(times)
        self._spent += self._seconds(made)
        return made

    def _plan(self, pilots: Sequence[float]) -> None:
        """Settle calls a round and rounds of the first batch."""
        times = [pilot * self._buffers for pilot in pilots]
        self._calls = timing.plan(times).calls
        possible = int(_BATCH_SECONDS / (sum(times) * self._calls))
        self._rounds = min(max(possible, verdicts.LEAST_ROUNDS), verdicts.ROUNDS)

    def _seconds(self, batch: Batch) -> float:
        return sum(map(sum, batch.times.values())) * self._calls * self._buffers

    def _warm_up(self, name: str, given: TimedInput) -> float:
        self._buffers = buffers(2 * given.nbytes, self.lineup.bus)
        request = {"op": "prepare", "view": protocol.to_message(given.view), "buffers": self._buffers}
        # A base or candidate may be a compiled model, which tries its choices for every shape.
        self.lineup.ask(name, request, max(self.lineup.limits.build, COMPILE_SECONDS))
        return min(self._time(name, 1) for _ in range(2))

    def _time(self, name: str, calls: int) -> float:
        """Seconds of one call, averaged over ``calls`` calls on each buffer; results are kept until the next."""
        who = COPY if name == AGAIN else name
        reply = self.lineup.ask(who, {"op": "time", "calls": calls, "keep": who != COPY}, self.lineup.limits.call)
        spent = reply.get("nanoseconds")
        if not isinstance(spent, int) or spent <= 0:
            raise NotMeasuredError(f"{_of(who)}invalid measurement: {calls} calls took {spent!r} ns")
        return spent / 1e9 / (calls * self._buffers)

    def _judge(self, name: str, given: TimedInput) -> None:
        """Look at the results of a contestant's last timed round.

        Raises:
            NotMeasuredError: they are wrong.
        """
        given.clear()
        request = {
            "op": "collect",
            "kept": f"timed-{self.chooser.randrange(self._buffers)}",
            "view": protocol.to_message(given.view),
            "output": protocol.to_message(given.output),
        }
        meta = self.lineup.ask(name, request, self.lineup.limits.call).get("meta") or {}
        wrong = given.misfit(meta) or given.judge(self.lineup.operator, self.chooser)[0]
        if wrong:
            raise NotMeasuredError(f"{_of(name)}invalid measurement: a timed call went wrong: {wrong}")

    def _shared(self, batch: Batch, nbytes: int) -> str:
        """Why its times say little about the code; "" where they may."""
        # Copies of other layouts have speeds of their own.
        if self.entry.case.layout != layouts.CONTIGUOUS:
            return ""
        return timing.shared(median(batch.times[COPY] + batch.times[AGAIN]), nbytes, self.lineup.bus)

    def _impossible(self, batch: Batch, nbytes: int) -> str:
        """Why a contestant's times cannot be true; "" where they can."""
        best_copy = min(*batch.times[COPY], *batch.times[AGAIN])
        for name in (CANDIDATE, BASE):
            fastest = min(batch.times.get(name, [best_copy]))
            said = timing.impossible(fastest, best_copy, nbytes, nbytes * self._buffers, self.lineup.bus)
            if said:
                return f"{_of(name)}{said}"
        return ""


def _ratio(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [first / second for first, second in zip(above, below, strict=True)]


def _of(name: str) -> str:
    """How a message names a contestant; the candidate goes without saying, as in `Lineup.ask`."""
    return "" if name == CANDIDATE else f"{name}: "


def _reason(text: str) -> str:
    """The reason, in a word, of a case that was not measured."""
    if text.startswith(NOT_RUN):
        return NO_MEMORY
    if text.startswith(timing.SHARED):
        return BUSY
    if text.removeprefix(f"{BASE}: ").startswith("invalid measurement"):
        return INVALID
    return NO_BASELINE if text.startswith(f"{BASE}: ") else FAILED
