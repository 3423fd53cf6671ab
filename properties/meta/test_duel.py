"""A duel with workers of straw, whose clocks are known: who goes when, what is judged, what a machine's unrest does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import torch

from ci.gate_record import (
    BUSY,
    FAILED,
    FASTER,
    INVALID,
    NO_BASELINE,
    NO_MEMORY,
    NOT_MEASURED,
    SAME,
    SLOWER,
    UNDECIDED,
    Case,
)
from properties import slots, verdicts
from properties.benchmark_cases import Entry
from properties.benchmarks import Lineup
from properties.cases import parse
from properties.duel import Duel
from properties.l1_norm import L1_NORM
from properties.limits import Limits
from properties.operators import Operator
from properties.options import ROOT
from properties.process import Nursery
from properties.protocol import Message
from properties.slots import Slots
from properties.timed_input import NotMeasuredError
from properties.timing import BASE, CANDIDATE, COPY, Bus

CASE = Entry(parse("shape=64x256,values=signed,seed=1"))
RULE = verdicts.rule(30)
#: Seconds of a call of a contestant, given how many times it was timed and how many times it was prepared.
Clock = Callable[[int, int], float]


def steady(seconds: float) -> Clock:
    return lambda *_: seconds


class StrawLineup(Lineup):
    """Replies as workers would whose clocks show what was given; ``results`` are what their calls return."""

    def __init__(self, clocks: dict[str, Clock], results: dict[str, Callable[[torch.Tensor], torch.Tensor]]) -> None:
        self.operator: Operator = L1_NORM
        self.device, self.limits, self.bus = "cpu", Limits(), Bus(1e12)
        self.real = Lineup(L1_NORM, L1_NORM.reference, "cpu", Limits(), Nursery(), ROOT, ())
        self.runners = self.real.runners
        self.clocks, self.results = clocks, results
        self.asked: list[tuple[str, str]] = []
        self.failing: dict[str, str] = {}
        self.prepared: Counter[str] = Counter()
        self.timed: Counter[str] = Counter()

    def slots(self) -> Slots:
        """As of a candidate that loads."""
        return self.runners[CANDIDATE].memory

    def rest(self) -> None:
        """Nobody has anything to give back."""
        self.asked.append(("all", "rest"))

    def ask(self, name: str, request: Message, timeout: float) -> Message:  # noqa: ARG002 - as Lineup
        """As a worker would."""
        self.asked.append((name, request["op"]))
        if name in self.failing:
            raise NotMeasuredError(("" if name == CANDIDATE else f"{name}: ") + self.failing[name])
        if request["op"] == "prepare":
            self.prepared[name] += 1
            return {"outcome": "prepared", "method": "straw"}
        if request["op"] == "time":
            self.timed[name] += 1
            seconds = self.clocks[name](self.timed[name], self.prepared[name])
            return {"outcome": "timed", "nanoseconds": round(seconds * request["calls"] * 1e9)}
        if request["op"] == "renew":
            return {"outcome": "renewed"}
        memory = self.slots()
        given = memory[slots.INPUT].data(request["view"]["place"]["start"], request["view"]["place"]["nbytes"])
        x = given.view(torch.float32).view(CASE.case.shape)
        y = self.results.get(name, reference)(x)
        into = memory[slots.OUTPUT].data(request["output"]["start"], request["output"]["nbytes"])
        into.copy_(y.contiguous().view(torch.uint8).view(-1))
        return {"outcome": "returned", "meta": {"is_tensor": True, "dtype": "float32", "shape": [64, 256]}}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x / x.abs().mean(1, keepdim=True)


@pytest.fixture
def fight() -> Iterator[Callable[..., tuple[Case, StrawLineup]]]:
    """Fights a duel of these clocks; returns its case and the lineup."""
    made: list[StrawLineup] = []

    def go(
        candidate: float | Clock = 1e-3,
        base: float | Clock = 1e-3,
        copy: float | Clock = 1e-3,
        stored: tuple[float, ...] = (),
        failing: dict[str, str] | None = None,
        results: dict[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
        bus: Bus | None = None,
    ) -> tuple[Case, StrawLineup]:
        given = {CANDIDATE: candidate, BASE: base, COPY: copy}
        clocks = {name: each if callable(each) else steady(each) for name, each in given.items()}
        made.append(StrawLineup(clocks, results or {}))
        made[-1].failing = failing or {}
        made[-1].bus = bus or made[-1].bus
        chooser = random.Random(1)  # noqa: S311 - a test is to be repeatable
        return Duel(made[-1], "64x256-float32", CASE, RULE, stored, chooser=chooser).run(), made[-1]

    yield go
    for each in made:
        each.real.close()


Fight = Callable[..., tuple[Case, StrawLineup]]


def test_equal_times_are_the_same_after_one_batch(fight: Fight) -> None:
    case, _ = fight()
    assert (case.verdict, case.rounds, case.reason) == (SAME, verdicts.ROUNDS, "")
    assert case.ratio is not None
    assert case.ratio.value == 1.0


@pytest.mark.parametrize(("seconds", "verdict"), [(1.05e-3, SLOWER), (0.9e-3, FASTER), (1.02e-3, SAME)])
def test_an_effect_beyond_the_minimum_is_said_after_two_batches(fight: Fight, seconds: float, verdict: str) -> None:
    case, lineup = fight(candidate=seconds)
    assert case.verdict == verdict
    assert case.ratio is not None
    assert case.ratio.value == pytest.approx(seconds / 1e-3)
    assert lineup.prepared[BASE] == (1 if verdict == SAME else 2)


def test_contestants_take_turns_between_two_turns_of_the_copy(fight: Fight) -> None:
    _, lineup = fight(candidate=1.2e-3)
    timed = [name for name, operation in lineup.asked if operation == "time"][6:]  # two pilots each come first
    assert timed[:8] == [COPY, CANDIDATE, BASE, COPY, COPY, BASE, CANDIDATE, COPY]
    prepared = [name for name, operation in lineup.asked if operation == "prepare"]
    assert prepared == [CANDIDATE, BASE, COPY, BASE, CANDIDATE, COPY], "and are prepared in the other order, too"


def test_where_memory_lies_in_one_batch_accuses_nobody(fight: Fight) -> None:
    # 8 % after the first preparation, nothing after the following ones.
    case, _ = fight(candidate=lambda _, prepared: 1.08e-3 if prepared == 1 else 1e-3)
    assert case.verdict == SAME
    assert case.ratio is not None
    assert case.ratio.value == 1.0, "the figures are those of the batches that decided"


def test_a_mode_that_a_whole_run_is_in_goes_out_of_the_ratio(fight: Fight) -> None:
    # Everything takes 12 % more: between this run and any other the times differ, within it they do not.
    case, _ = fight(candidate=1.12e-3, base=1.12e-3, copy=1.12e-3)
    assert case.verdict == SAME
    assert case.candidate_of_copy is not None
    assert case.candidate_of_copy.value == pytest.approx(1.0)


def test_a_stored_run_of_another_mode_is_compared_through_the_copy(fight: Fight) -> None:
    # The stored run was 12 % faster in everything (0.88 of the time): its fractions of a copy are the same.
    stored = (0.95, 0.951, 0.949) * 7
    case, lineup = fight(candidate=1e-3 / 0.95, stored=stored)
    assert case.verdict == SAME
    assert case.base_seconds is None
    assert lineup.timed[BASE] == 0
    slower, _ = fight(candidate=1.12e-3 / 0.95, stored=stored)
    assert slower.verdict == SLOWER
    assert slower.ratio is not None
    assert slower.ratio.value == pytest.approx(1.12, rel=1e-3)


def test_restless_times_are_undecided_and_say_what_was_measured(fight: Fight) -> None:
    chance = random.Random(3)  # noqa: S311 - as above
    case, _ = fight(candidate=lambda *_: chance.uniform(0.5e-3, 2e-3), base=lambda *_: chance.uniform(0.5e-3, 2e-3))
    assert case.verdict == UNDECIDED
    assert case.text.startswith("its batches said: undecided")
    assert case.rounds == sum(verdicts.rounds_of(batch, verdicts.ROUNDS) for batch in range(verdicts.BATCHES))


def test_beside_a_neighbour_nothing_is_the_same(fight: Fight) -> None:
    # 5 % of the work are 1 % of what is measured where four others have their turns in every call.
    nbytes, alone = 2 * 64 * 256 * 4, 0.2e-3
    card = Bus(nbytes / alone / 0.9, whole=True)
    times = {"candidate": 4 * alone + 1.05 * alone, "base": 5 * alone, "copy": 5 * alone}
    case, _ = fight(**times, bus=card)
    assert (case.verdict, case.reason) == (NOT_MEASURED, BUSY)
    assert case.text.startswith("something else uses the card")
    quiet, _ = fight(candidate=1.05 * alone, base=alone, copy=alone, bus=card)
    assert quiet.verdict == SLOWER
    loud, _ = fight(candidate=7 * alone, base=5 * alone, copy=5 * alone, bus=card)
    assert loud.verdict == SLOWER, "more than half as long again is not hidden"


def test_a_wrong_result_is_never_faster(fight: Fight) -> None:
    case, _ = fight(candidate=0.5e-3, results={CANDIDATE: lambda x: 2 * x})
    assert (case.verdict, case.reason) == (NOT_MEASURED, INVALID)
    assert "wrong-value" in case.text


def test_what_was_right_for_the_values_before_is_never_faster(fight: Fight) -> None:
    kept = []

    def remember(x: torch.Tensor) -> torch.Tensor:
        kept.append(reference(x))
        return kept[0]

    case, lineup = fight(candidate=0.5e-3, results={CANDIDATE: remember})
    assert lineup.asked.count((CANDIDATE, "renew")) == 2, "stale when elements changed places behind the first batch"
    assert (case.verdict, case.reason) == (NOT_MEASURED, INVALID)
    assert "wrong-value" in case.text


def test_a_memo_that_knows_its_input_by_a_sample_is_never_faster(fight: Fight) -> None:
    kept: dict[tuple[float, ...], torch.Tensor] = {}

    def remember(x: torch.Tensor) -> torch.Tensor:
        return kept.setdefault(tuple(x.view(-1)[:: x.numel() // 64].tolist()), reference(x))

    case, _ = fight(candidate=0.5e-3, results={CANDIDATE: remember})
    assert (case.verdict, case.reason) == (NOT_MEASURED, INVALID)
    assert "wrong-value" in case.text


def test_a_wrong_base_is_no_yardstick(fight: Fight) -> None:
    case, _ = fight(results={BASE: lambda x: 2 * x})
    assert (case.verdict, case.reason) == (NOT_MEASURED, INVALID)
    assert case.text.startswith("base: invalid measurement")


def test_a_time_that_cannot_be_true_is_invalid(fight: Fight) -> None:
    case, _ = fight(candidate=1e-7)
    assert (case.verdict, case.reason) == (NOT_MEASURED, INVALID)
    assert case.text.startswith("invalid measurement: 1311 GB/s, while ")
    base, _ = fight(base=1e-7)
    assert base.text.startswith("base: invalid measurement: 1311 GB/s, while ")


@pytest.mark.parametrize(("name", "reason"), [(CANDIDATE, FAILED), (BASE, NO_BASELINE), (COPY, FAILED)])
def test_who_cannot_be_timed_is_named(fight: Fight, name: str, reason: str) -> None:
    case, _ = fight(failing={name: "raises ValueError: only on Tuesdays"})
    assert (case.verdict, case.reason) == (NOT_MEASURED, reason)
    assert case.text.endswith("raises ValueError: only on Tuesdays")


def test_what_does_not_fit_says_what_it_needs(fight: Fight, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("properties.timed_input.available_bytes", lambda: 1 << 10)
    case, _ = fight()
    assert (case.verdict, case.reason) == (NOT_MEASURED, NO_MEMORY)


def test_results_are_looked_at_twice_in_every_batch_of_both(fight: Fight) -> None:
    _, lineup = fight(candidate=1.2e-3)
    collected = [name for name, operation in lineup.asked if operation == "collect"]
    assert collected == 2 * [CANDIDATE, BASE, CANDIDATE, BASE], "on new values, and where a few changed places"
