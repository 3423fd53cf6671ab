"""Time one candidate beside a copy of the same bytes, the eager reference and the compiled one, in one run.

Each contestant is loaded in a worker of its own and reads the same input, in memory that the judging process owns; the
judging process imports none of them. Its part is to say who goes when, to check that the result of one random round is
right, and to refuse a time that cannot be.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import card, layouts, protocol, timing
from .benchmark_cases import Entry
from .build_place import NoPlaceError
from .cases import Case
from .limits import Limits
from .operators import Operator
from .process import Nursery, WorkerDiedError
from .protocol import Message
from .runner import Runner
from .slots import Slots
from .timed_input import NotMeasuredError, TimedInput
from .timing import BASE, CANDIDATE, COMPILE, COPY, EAGER, Bus, Clock

COMPILE_MODE = "max-autotune-no-cudagraphs"
#: Seconds in which `torch.compile` may try its choices for one shape; it takes 5 to 30.
COMPILE_SECONDS = 300.0
_MOST_BUFFERS = 1024
_COPY_MODEL = Path(__file__).resolve().parent / "peers" / "copy.py"


class Lineup:
    """The contestants on one target: the candidate and its peers, each with a worker, all on the same slots."""

    def __init__(
        self,
        operator: Operator,
        candidate: Path,
        device: str,
        limits: Limits,
        nursery: Nursery,
        cache: Path,
        peers: tuple[str, ...],
        base: Path | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            operator: what is computed.
            candidate: its file.
            device: as torch names it.
            limits: time limits of build and call.
            nursery: where workers come from: one that does not fill fresh memory.
            cache: folder of builds.
            peers: which of eager and compile to time besides.
            base: file of another candidate to time besides.
        """
        self.operator, self.device, self.limits = operator, device, limits
        on_gpu = device.startswith("cuda")
        first = Runner(candidate, operator.init, limits, nursery, cache, device)
        self.runners = {CANDIDATE: first}
        if base is not None:
            self.runners[BASE] = Runner(
                base, operator.init, limits, nursery, cache, device, slots=first.memory, borrows=True
            )
        models = {COPY: (_COPY_MODEL, (), ""), EAGER: (operator.reference, operator.init, "")}
        if on_gpu:
            models[COMPILE] = (operator.reference, operator.init, COMPILE_MODE)
        for name in (COPY, *peers):
            if name in models:
                path, init, mode = models[name]
                self.runners[name] = Runner(
                    path,
                    init,
                    limits,
                    nursery,
                    cache,
                    device,
                    model="Model",
                    compile_mode=mode,
                    slots=first.memory,
                    borrows=True,
                )
        self.bus = card.bus() if on_gpu else Bus.of_cores(os.cpu_count() or 1)

    def slots(self) -> Slots:
        """Where the input and the looked-at result lie; the candidate is loaded then.

        Raises:
            NotMeasuredError: it does not load.
        """
        first = self.runners[CANDIDATE]
        self._load(first, "")
        return first.memory

    def ask(self, name: str, request: Message, timeout: float) -> Message:
        """One contestant's reply.

        Raises:
            NotMeasuredError: it does not load, raises, or dies.
        """
        runner, who = self.runners[name], "" if name == CANDIDATE else f"{name}: "
        self._load(runner, who)
        try:
            reply = runner.ask(request, timeout)
        except WorkerDiedError as dead:
            raise NotMeasuredError(f"{who}{dead.death.cause} (asked to {request['op']})") from None
        if reply["outcome"] == "raised":
            raise NotMeasuredError(f"{who}raises {protocol.error_from(reply['error'])}")
        return reply

    @staticmethod
    def _load(runner: Runner, who: str) -> None:
        try:
            failure = runner.load()
        except NoPlaceError as full:
            raise NotMeasuredError(str(full)) from None
        if failure is not None:
            raise NotMeasuredError(f"{who}{failure.text}")

    def renew(self, names: Iterable[str], given: TimedInput, exchange: random.Random | None = None) -> None:
        """Put other values in the place of an input that these contestants are timed on.

        Args:
            names: whose copies follow.
            given: the input.
            exchange: chooses a few elements that change places, and all others stay; None for all new values.

        Raises:
            NotMeasuredError: as `ask`.
        """
        if exchange is None:
            given.renew()
        else:
            given.exchange(exchange)
        for name in names:
            self.ask(name, {"op": "renew"}, self.limits.call)

    def rest(self) -> None:
        """Let every living worker give its memory back."""
        for name, runner in self.runners.items():
            if runner.loaded:
                try:
                    self.ask(name, {"op": "rest"}, self.limits.call)
                except NotMeasuredError:
                    continue  # its worker is gone, and the memory with it; the next case starts another

    def close(self) -> None:
        """End all workers; the candidate's runner owns the slots and goes last."""
        for name in reversed(list(self.runners)):
            self.runners[name].close()


@dataclass(frozen=True)
class Result:
    """What came out of a case.

    Attributes:
        facts: figures and circumstances, as JSON has them.
        wrong: why they do not count; "" where they do.
    """

    facts: dict[str, object]
    wrong: str


@dataclass
class Race:
    """One case on one lineup: `prepare`, then `round` as often as `rounds` says, then `finish`.

    Attributes:
        lineup: who takes part.
        entry: the case and its goal.
        clock: is advanced by the candidate's times.
        chooser: which round and which part of its result is looked at; a candidate must not know.
        rounds: how many are planned; set by `prepare`.
        missing: peers that could not be timed, and why.
        result: set by `finish`.
    """

    lineup: Lineup
    entry: Entry
    clock: Clock
    chooser: random.Random = field(default_factory=random.SystemRandom)
    rounds: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    result: Result | None = None
    _times: dict[str, list[float]] = field(default_factory=dict)
    _methods: dict[str, str] = field(default_factory=dict)
    _calls: int = 1
    _buffers: int = 1
    _chosen: int = 0
    _collected: int = 0
    _meta: Mapping[str, object] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the input, warm every contestant up, and plan the rounds.

        Raises:
            NotMeasuredError: memory does not suffice, or the candidate or the copy cannot be timed.
        """
        self._given = TimedInput(self.entry.case, self.lineup.slots())
        self._buffers = buffers(2 * self._given.nbytes, self.lineup.bus)
        pilots: dict[str, float] = {}
        for name in self.lineup.runners:
            try:
                pilots[name] = self._warm_up(name)
            except NotMeasuredError as error:
                if name in (CANDIDATE, COPY):
                    raise
                self.missing[name] = str(error).removeprefix(f"{name}: ")
        self._times = {name: [] for name in pilots}
        plan = timing.plan([pilot * self._buffers for pilot in pilots.values()])
        self.rounds, self._calls = plan.rounds, plan.calls
        self._chosen = self.chooser.randrange(self.rounds)
        self.clock.reset()

    def round(self) -> None:
        """Let every contestant go once; the clock is advanced by the candidate's time of a call.

        The round whose result is looked at is the first on its values: what was left of earlier results is wrong there.
        """
        turn = len(self._times[CANDIDATE])
        if turn == self._chosen:
            self.lineup.renew(self._times, self._given)
        for name in timing.order(list(self._times), turn):
            self._times[name].append(self._time(name, self._calls, keep=name == CANDIDATE))
            if name == CANDIDATE and turn == self._chosen:
                self._collect()
        self.clock.advance(self._times[CANDIDATE][-1])

    def finish(self) -> Result:
        """Judge the result of the chosen round, and say what was measured."""
        if not self._collected:  # fewer rounds were run than planned
            self.lineup.renew([CANDIDATE], self._given)
            self._time(CANDIDATE, 1, keep=True)
            self._collect()
        case, nbytes = self.entry.case, 2 * self._given.nbytes
        figures = timing.figures(self._times, nbytes)
        impossible = timing.impossible(
            min(self._times[CANDIDATE]), min(self._times[COPY]), nbytes, nbytes * self._buffers, self.lineup.bus
        )
        wrong, judged = self._judge()
        chosen = self._collected
        if not (impossible or wrong):
            wrong = self._look_again()
        facts: dict[str, object] = {
            "target": self.lineup.device.partition(":")[0],
            "shape": "x".join(map(str, case.shape)),
            "dtype": case.dtype,
            "layout": str(case.layout),
            "bytes": nbytes,
            **figures,
            "rounds": len(self._times[CANDIDATE]),
            "calls_a_round": self._calls,
            "buffers": self._buffers,
            "methods": dict(self._methods),
            "peers_not_timed": dict(self.missing),
            "judged": f"{judged} of {case.numel} elements of round {chosen}",
            "goal": self.entry.goal_text,
            "goal_met": self.entry.met(figures),
            "of_copy_rounds": [
                round(copy / mine, 5) for copy, mine in zip(self._times[COPY], self._times[CANDIDATE], strict=True)
            ],
        }
        self.result = Result(facts, impossible or wrong)
        return self.result

    def _warm_up(self, name: str) -> float:
        """Make a contestant ready; returns the seconds of one of its calls."""
        request = {"op": "prepare", "view": protocol.to_message(self._given.view), "buffers": self._buffers}
        limit = self.lineup.limits.build
        reply = self.lineup.ask(name, request, max(limit, COMPILE_SECONDS) if name == COMPILE else limit)
        note = f" ({reply['note']})" if reply.get("note") else ""
        self._methods[name] = f"{reply.get('method')}{note}"
        return min(self._time(name, 1, keep=False) for _ in range(2))

    def _time(self, name: str, calls: int, keep: bool) -> float:
        """Seconds of one call, averaged over ``calls`` calls on each buffer."""
        reply = self.lineup.ask(name, {"op": "time", "calls": calls, "keep": keep}, self.lineup.limits.call)
        spent = reply.get("nanoseconds")
        if not isinstance(spent, int) or spent <= 0:
            raise NotMeasuredError(f"invalid measurement: {calls} calls of the {name} took {spent!r} ns")
        return spent / 1e9 / (calls * self._buffers)

    def _collect(self) -> None:
        """Have a result of this round copied out, of a random buffer; the worker did not know beforehand."""
        kept = f"timed-{self.chooser.randrange(self._buffers)}"
        view, output = protocol.to_message(self._given.view), protocol.to_message(self._given.output)
        request = {"op": "collect", "kept": kept, "view": view, "output": output}
        self._meta = self.lineup.ask(CANDIDATE, request, self.lineup.limits.call).get("meta") or {}
        self._collected = len(self._times[CANDIDATE])

    def _look_again(self) -> str:
        """What is wrong with a result after as many rounds on what looks like its input; "" where nothing is."""
        self.lineup.renew([CANDIDATE], self._given, self.chooser)
        self._time(CANDIDATE, self._calls, keep=True)
        self._given.clear()
        self._collect()
        wrong, _ = self._judge()
        return f"after a few elements of its input changed places, {wrong}" if wrong else ""

    def _judge(self) -> tuple[str, int]:
        """What is wrong with the collected result, and how many of its elements were judged."""
        misfit = self._given.misfit(self._meta)
        if misfit:
            return f"a timed call {misfit}", 0
        wrong, judged = self._given.judge(self.lineup.operator, self.chooser)
        return (f"a timed call went wrong (round {self._collected}): {wrong}" if wrong else ""), judged


def buffers(nbytes: int, bus: Bus) -> int:
    """How many inputs a timed sequence needs so that nothing it reads is still in the cache."""
    return min(max(1, -(-timing.CACHES * bus.cache // nbytes)), _MOST_BUFFERS)


def label(case: Case) -> str:
    """A case in the name of a test."""
    words = ["x".join(map(str, case.shape)), case.dtype]
    return "-".join([*words, *([] if case.layout == layouts.CONTIGUOUS else [str(case.layout)])])
