"""A race of contestants: with real workers on small inputs, and with workers of straw whose clocks are known."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from properties import benchmark_plugin, benchmark_report
from properties.benchmark_cases import Entry, entries
from properties.benchmarks import Lineup, Race
from properties.cases import parse
from properties.l1_norm import L1_NORM
from properties.limits import Limits
from properties.options import ROOT
from properties.process import Nursery
from properties.protocol import Message
from properties.session import Seat
from properties.slots import Slots
from properties.targets import machine
from properties.timed_input import NotMeasuredError
from properties.timing import CANDIDATE, COPY, EAGER, MOST_ROUNDS, Bus, Clock

SMALL = Entry(parse("shape=64x16384,values=signed,seed=1"))
HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(perturb=False)
    yield made
    made.close()


def raced(nursery: Nursery, folder: Path, body: str, entry: Entry = SMALL, device: str = "cpu") -> Race:
    """A race of three rounds, finished, of the candidate whose ``forward`` has this body."""
    path = folder / "candidate.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.splitlines()))
    lineup = Lineup(L1_NORM, path, device, Limits(), nursery, folder / "cache", (EAGER,))
    race = Race(lineup, entry, Clock(), random.Random(1))  # noqa: S311 - a test is to be repeatable
    try:
        race.prepare()
        for _ in range(3):
            race.round()
        race.finish()
    finally:
        lineup.close()
    return race


def facts_of(race: Race) -> dict[str, object]:
    assert race.result is not None
    return race.result.facts


def wrong_of(race: Race) -> str:
    assert race.result is not None
    return race.result.wrong


# --- with real workers ------------------------------------------------------------------------------------------------


def test_an_honest_candidate_is_timed_beside_copy_and_eager(nursery: Nursery, tmp_path: Path) -> None:
    race = raced(nursery, tmp_path, "return x / x.abs().mean(1, keepdim=True)")
    assert wrong_of(race) == ""
    facts = facts_of(race)
    assert facts["bytes"] == 2 * 64 * 16384 * 4
    assert str(facts["judged"]).startswith("1048576 of 1048576 elements of round ")
    # How many times as fast is the machine's affair: beside other work eager took ten times as long as itself.
    assert facts["vs_eager"] == median(race._times[EAGER]) / median(race._times[CANDIDATE])
    assert facts["rounds"] == 3


# Without new values for the round that is looked at these would be right: what lies there was, and nothing else does.
@pytest.mark.parametrize(
    "body",
    [
        "return torch.empty_like(x)",
        "if not hasattr(self, 'y'):\n    self.y = x / x.abs().mean(1, keepdim=True)\nreturn self.y",
        "self.n = getattr(self, 'n', 0) + 1\nif self.n == 1:\n    self.y = x / x.abs().mean(1, keepdim=True)\n"
        "return self.y.clone()",
        "self.n = getattr(self, 'n', 0) + 1\nif self.n == 1:\n    self.y = torch.empty_like(x)\n"
        "some = slice(0, 64 if self.n == 1 else 48)\n"
        "torch.div(x[some], x[some].abs().mean(1, keepdim=True), out=self.y[some])\nreturn self.y",
        "key = tuple(x.reshape(-1)[:: x.numel() // 64].tolist())\nif key != getattr(self, 'key', None):\n"
        "    self.key, self.y = key, x / x.abs().mean(1, keepdim=True)\nreturn self.y.clone()",
    ],
    ids=[
        *("writes nothing", "returns what it kept", "copies what it kept", "leaves out rows in memory that has them"),
        "knows its input by a sample",
    ],
)
@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda:0", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu)]
        ),
    ],
)
def test_what_an_earlier_call_left_is_no_result(nursery: Nursery, tmp_path: Path, body: str, device: str) -> None:
    race = raced(nursery, tmp_path, body, device=device)
    assert race.result is not None
    wrong = race.result.wrong
    assert "a timed call went wrong" in wrong or "the call did not do its work within the time measured" in wrong


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 2 * x", "wrong-value in y[0:64]"),
        (
            "y = x / x.abs().mean(1, keepdim=True)\nx.zero_()\nreturn y",
            "the timed calls changed their input in x[0:64]",
        ),
        ("return (x / x.abs().mean(1, keepdim=True)).double()", "expected a tensor ('float32', [64, 16384])"),
        ("return [x / x.abs().mean(1, keepdim=True)]", "a timed call returned list, "),
    ],
)
def test_what_the_timed_calls_returned_is_judged(nursery: Nursery, tmp_path: Path, body: str, said: str) -> None:
    assert said in wrong_of(raced(nursery, tmp_path, body))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('only on Tuesdays')", "raises ValueError: only on Tuesdays"),
        ("import os\nos._exit(3)", "exit status 3 (asked to prepare)"),
        ("return x +", "does not parse"),
    ],
)
def test_a_candidate_that_cannot_be_timed_says_why(nursery: Nursery, tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(NotMeasuredError, match=re.escape(said)):
        raced(nursery, tmp_path, body)


def test_a_strided_input_reaches_every_contestant(nursery: Nursery, tmp_path: Path) -> None:
    entry = Entry(parse("shape=128x257,layout=offset3+order1.0+pitch5,values=signed,seed=1"))
    race = raced(nursery, tmp_path, "return x / x.abs().mean(1, keepdim=True)", entry)
    assert wrong_of(race) == ""


def test_fresh_memory_is_not_filled_where_times_are_taken(nursery: Nursery, tmp_path: Path) -> None:
    # glibc's filling would count as a part of every allocation, whoever makes it.
    body = "import os\nassert 'MALLOC_PERTURB_' not in os.environ\nreturn x / x.abs().mean(1, keepdim=True)"
    assert wrong_of(raced(nursery, tmp_path, body)) == ""


@pytest.mark.gpu
@pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu)
@pytest.mark.usefixtures("alone_on_the_card")
def test_device_times_scale_with_the_bytes(nursery: Nursery, tmp_path: Path) -> None:
    # 4 MiB and 1 GiB: an asynchronous launch timed as nothing, or its cost timed as the kernel, would not give 256.
    found = []
    for size, method in ((1024, "graph"), (16384, "events")):
        entry = Entry(parse(f"shape={size}x{size},values=signed,seed=1"))
        race = raced(nursery, tmp_path, "return x / x.abs().mean(1, keepdim=True)", entry, "cuda:0")
        facts = facts_of(race)
        assert wrong_of(race) == ""
        assert facts["methods"] == dict.fromkeys((CANDIDATE, COPY, EAGER), method)
        found.append(float(str(facts["seconds"])))
    assert 128 < found[1] / found[0] < 512


@pytest.mark.gpu
@pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu)
@pytest.mark.usefixtures("alone_on_the_card")
def test_a_candidate_that_waits_for_its_own_kernels_is_launched_instead_of_captured(
    nursery: Nursery, tmp_path: Path
) -> None:
    body = "y = x / x.abs().mean(1, keepdim=True)\ntorch.cuda.synchronize()\nreturn y"
    race = raced(nursery, tmp_path, body, Entry(parse("shape=1024x1024,values=signed,seed=1")), "cuda:0")
    methods = facts_of(race)["methods"]
    assert isinstance(methods, dict)
    assert methods[CANDIDATE].startswith("launches (capture fails: ")
    assert methods[COPY] == "graph"
    assert wrong_of(race) == ""


# --- with workers of straw --------------------------------------------------------------------------------------------


class StrawLineup(Lineup):
    """Replies as workers would whose clocks show what ``speed`` (bytes a second) of each says; records the requests."""

    def __init__(self, speed: dict[str, float], bus: Bus | None = None) -> None:
        self.operator, self.device, self.limits = L1_NORM, "cpu", Limits()
        self.real = Lineup(L1_NORM, L1_NORM.reference, "cpu", Limits(), Nursery(), ROOT, (EAGER,))
        self.runners = self.real.runners
        self.bus = bus or Bus()
        self.speed, self.asked = speed, list[tuple[str, str]]()
        self.nbytes, self.buffers = 0, 1

    def slots(self) -> Slots:
        """As of a candidate that loads."""
        return self.runners[CANDIDATE].memory

    def ask(self, name: str, request: Message, timeout: float) -> Message:  # noqa: ARG002 - as Lineup
        """As a worker would."""
        self.asked.append((name, request["op"]))
        if request["op"] == "prepare":
            self.nbytes, self.buffers = 2 * request["view"]["place"]["nbytes"], request["buffers"]
            if self.speed[name] == 0:
                raise NotMeasuredError(f"{name}: out of breath")
            return {"outcome": "prepared", "method": "straw"}
        if request["op"] == "time":
            spent = request["calls"] * self.buffers * self.nbytes / self.speed[name] * 1e9
            return {"outcome": "timed", "nanoseconds": round(spent)}
        if request["op"] == "renew":
            return {"outcome": "renewed"}
        return {"outcome": "returned", "meta": {}}


def straw_race(line: str, speed: dict[str, float], bus: Bus | None = None, rounds: int = 4) -> tuple[Race, StrawLineup]:
    lineup = StrawLineup(speed, bus)
    race = Race(lineup, Entry(parse(line)), Clock())
    try:
        race.prepare()
        for _ in range(rounds):
            race.round()
        race.finish()
    finally:
        lineup.real.close()
    return race, lineup


SPEEDS = {CANDIDATE: 2e9, COPY: 4e9, EAGER: 1e9}


def test_times_scale_with_the_bytes() -> None:
    small, _ = straw_race("shape=256x256", SPEEDS)
    large, _ = straw_race("shape=4096x256", SPEEDS)
    ratio = float(str(facts_of(large)["seconds"])) / float(str(facts_of(small)["seconds"]))
    assert ratio == pytest.approx(16, rel=1e-3)


def test_figures_are_ratios_of_one_run() -> None:
    facts = facts_of(straw_race("shape=256x256", SPEEDS)[0])
    assert facts["of_copy"] == pytest.approx(0.5, rel=1e-3)
    assert facts["vs_eager"] == pytest.approx(2.0, rel=1e-3)
    assert facts["gb_per_s"] == pytest.approx(2.0, rel=1e-3)


def test_a_time_does_not_depend_on_how_many_buffers_it_was_spread_over() -> None:
    rotated, lineup = straw_race("shape=256x256", SPEEDS, Bus(1e12, cache=1 << 20))
    assert lineup.buffers == 8, "four caches of a MiB over inputs and outputs of half a MiB"
    assert facts_of(rotated)["gb_per_s"] == pytest.approx(2.0, rel=1e-3)


def test_contestants_take_turns_in_alternating_order() -> None:
    _, lineup = straw_race("shape=256x256", SPEEDS)
    timed = [name for name, operation in lineup.asked if operation == "time"][6:]  # two pilots each come first
    assert timed[:6] == [CANDIDATE, COPY, EAGER, EAGER, COPY, CANDIDATE]


def test_the_round_that_is_looked_at_has_new_values_before_anybody_is_timed() -> None:
    race, lineup = straw_race("shape=256x256", SPEEDS, rounds=MOST_ROUNDS)
    assert race.rounds == MOST_ROUNDS, "all that are planned are run"
    operations = [operation for _, operation in lineup.asked]
    first = operations.index("renew")
    assert operations[first : first + 3] == ["renew"] * 3, "all who take part"
    assert operations.count("renew") == 3 + ("renew" in operations[-3:])
    candidate = lineup.asked.index((CANDIDATE, "time"), first)
    assert lineup.asked[candidate + 1] == (CANDIDATE, "collect")


def test_a_peer_that_cannot_be_timed_is_named_and_the_rest_is_measured() -> None:
    race, _ = straw_race("shape=256x256", {**SPEEDS, EAGER: 0.0})
    assert race.missing == {EAGER: "out of breath"}
    assert "vs_eager" not in facts_of(race)
    assert facts_of(race)["of_copy"] == pytest.approx(0.5, rel=1e-3)


def test_without_a_copy_nothing_is_measured() -> None:
    with pytest.raises(NotMeasuredError, match="copy: out of breath"):
        straw_race("shape=256x256", {**SPEEDS, COPY: 0.0})


def test_what_does_not_fit_is_not_run_and_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("properties.timed_input.available_bytes", lambda: 1 << 20)
    with pytest.raises(NotMeasuredError, match=r"^not run: needs 0\.3 GiB, have 0\.0 GiB$"):
        straw_race("shape=4096x4096", SPEEDS)


def test_a_candidate_that_cannot_be_timed_is_skipped_and_the_shipped_kernel_fails() -> None:
    class Broken(Race):
        def prepare(self) -> None:
            """Find that nothing can be timed."""
            raise NotMeasuredError("raises ValueError: no")

    race, facts = Broken(StrawLineup(SPEEDS), SMALL, Clock()), dict[str, object]()
    with pytest.raises(pytest.skip.Exception, match="not measured: raises ValueError: no"):
        benchmark_plugin.prepare(race, Seat(Path("k.py"), "cpu", shipped=False), facts)
    assert facts["reason"] == "raises ValueError: no"
    with pytest.raises(pytest.fail.Exception, match="the shipped kernel cannot be timed"):
        benchmark_plugin.prepare(race, Seat(Path("k.py"), "cpu", shipped=True), facts)


def test_the_table_shows_figures_and_reasons() -> None:
    facts = {**facts_of(straw_race("shape=256x256", SPEEDS)[0]), "candidate": "k", "case": "256x256-float32"}
    lost = {"candidate": "k", "target": "cpu", "case": "9x9-float32", "reason": "not run: needs 9 GiB, have 1 GiB"}
    text = benchmark_report.table([{**facts, "reason": "", "peers_not_timed": {"compile": "no triton"}}, lost], 100)
    assert "k on cpu" in text
    assert "0.500" in text
    assert "2.00" in text
    assert "not measured: 9x9-float32: not run: needs 9 GiB, have 1 GiB" in text
    assert "compile not timed: 256x256-float32: no triton" in text


def test_every_case_has_values_that_the_oracle_can_judge() -> None:
    for target in ("cpu", "cuda"):
        for entry in entries(target):
            assert entry.case.columns <= 1 << 20 or entry.case.values == "integers", str(entry.case)
