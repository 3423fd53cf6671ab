"""pytest's side of the benchmarks: who is timed on what, pytest-benchmark's settings, and the table at the end.

pytest-benchmark stores, compares and draws; the times it is given are those that the workers measured. Its storage is
the checkout's ``.benchmarks``, whatever the current folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from . import benchmark_report
from .benchmark_cases import Entry, entries
from .benchmarks import Lineup, Race, label
from .options import ROOT
from .plugin import run_of
from .process import Nursery
from .records import Record
from .selection import wanted
from .session import Seat
from .targets import machine
from .timed_input import NOT_RUN, NotMeasuredError
from .timing import Clock

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

#: What pytest-benchmark reads in place of the time of day.
CLOCK = Clock()
_BENCH = pytest.StashKey["Bench"]()
_KEY = "kernelproof-benchmark"
_DEFAULT_STORAGE = "file://./.benchmarks"


class Logger(Protocol):
    """As far as pytest-benchmark's logger is used."""

    def info(self, text: str) -> None:
        """Write a line."""


class Benchmark(Protocol):
    """As far as pytest-benchmark's fixture is used."""

    extra_info: dict[str, object]
    has_error: bool

    def pedantic(self, target: Callable[[], None], *, rounds: int) -> None:
        """Call the target that often and take a time from the clock around each call."""


class BenchmarkSession(Protocol):
    """As far as pytest-benchmark's session is used."""

    logger: Logger


class Bench:
    """The benchmarks of one pytest process."""

    def __init__(self) -> None:
        self.chosen: dict[str, tuple[Seat, Entry]] = {}
        self.facts: list[Record] = []
        self._nursery: Nursery | None = None
        self._lineup: tuple[Seat, Lineup] | None = None

    def lineup(self, seat: Seat, config: pytest.Config) -> Lineup:
        """The contestants of a seat; those of the seat before end."""
        if self._lineup is None or self._lineup[0] != seat:
            self._end_lineup()
            run = run_of(config)
            operator, options = run.session.operator, run.options
            device = "cuda:0" if seat.target == "cuda" else "cpu"
            self._nursery = self._nursery or Nursery(perturb=False)
            made = Lineup(operator, seat.path, device, options.limits, self._nursery, options.cache, options.peers)
            self._lineup = (seat, made)
        return self._lineup[1]

    def close(self) -> None:
        """End all workers."""
        self._end_lineup()
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None

    def _end_lineup(self) -> None:
        if self._lineup is not None:
            self._lineup[1].close()
            self._lineup = None


def pytest_configure(config: pytest.Config) -> None:
    """Settle what pytest-benchmark is told, before it looks."""
    config.stash[_BENCH] = _current["bench"] = Bench()
    config.option.benchmark_storage = storage(getattr(config.option, "benchmark_storage", _DEFAULT_STORAGE))
    problem = usage_problem(config.getoption)
    if problem:
        raise pytest.UsageError(problem)


def storage(given: str) -> str:
    """Where runs are stored: in the checkout, unless another place was given (pytest-benchmark's is relative)."""
    return str(ROOT / ".benchmarks") if given == _DEFAULT_STORAGE else given


def usage_problem(option: Callable[[str, object], object]) -> str:
    """What cannot be meant; "" where all can.

    Args:
        option: an option's value by name, and what to give where there is no such option.
    """
    compared = option("benchmark_compare", None)
    if isinstance(compared, str) and (compared.partition("::")[0].endswith(".py") or Path(compared).is_dir()):
        return (
            f"--benchmark-compare took the path {compared} for the number of a stored run; "
            f"write --benchmark-compare=0001, or put paths first"
        )
    if option("benchmark_histogram", None) and find_spec("pygal") is None:
        return (
            "--benchmark-histogram draws with pygal, which is not installed: pip install 'pytest-benchmark[histogram]'"
        )
    if not wanted(str(option("markexpr", "") or "")):
        return ""
    if option("numprocesses", None) or option("dist", "no") != "no":
        return "-m benchmark measures one thing at a time: leave -n (and --dist) out"
    if option("isolation", None) == "none":
        return "-m benchmark measures in processes of its own: leave --isolation=none out"
    return ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every case is a test for every candidate and target."""
    if "race" not in metafunc.fixturenames:
        return
    run, bench = run_of(metafunc.config), metafunc.config.stash[_BENCH]
    for number, seat in enumerate(run.seats):
        same_name = [str(each) for each in run.seats].count(str(seat)) > 1
        name = f"{seat}-{number}" if same_name else str(seat)
        bench.chosen |= {f"{name}-{label(entry.case)}": (seat, entry) for entry in entries(seat.target)}
    metafunc.parametrize("race", list(bench.chosen), indirect=True)


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Iterator[Race]:
    """One case with every contestant warmed up; skipped with the reason where there is nothing to time."""
    bench = request.config.stash[_BENCH]
    seat, entry = bench.chosen[request.param]
    lineup = bench.lineup(seat, request.config)
    made = Race(lineup, entry, CLOCK)
    facts: Record = {"candidate": seat.path.stem, "target": seat.target, "case": label(entry.case), "reason": ""}
    try:
        prepare(made, seat, facts)
        yield made
        if made.result is not None:
            facts |= {**made.result.facts, "reason": made.result.wrong}
    finally:
        lineup.rest()
        request.node.user_properties.append((_KEY, json.dumps(facts)))


def prepare(made: Race, seat: Seat, facts: Record) -> None:
    """Prepare a race: what cannot be timed is skipped, but the shipped kernel must be timed wherever it can be run."""
    try:
        made.prepare()
    except NotMeasuredError as error:
        facts["reason"] = str(error)
        if seat.shipped and not str(error).startswith(NOT_RUN):
            pytest.fail(f"the shipped kernel cannot be timed: {error}", pytrace=False)
        pytest.skip(f"not measured: {error}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Gather the facts of a finished test."""
    if report.when == "teardown":
        for name, text in report.user_properties:
            if name == _KEY and "bench" in _current:
                _current["bench"].facts.append(json.loads(str(text)))


#: `pytest_runtest_logreport` is given no config: the benchmarks of this process are kept here.
_current: dict[str, Bench] = {}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop where a comparison was asked for and there is nothing to compare with."""
    config = session.config
    compared = config.getoption("benchmark_compare", None)
    asked = compared and wanted(config.getoption("markexpr") or "")
    if asked and not getattr(getattr(config, "_benchmarksession", None), "compared_mapping", True):
        what = "" if compared is True else f" {compared}"
        raise pytest.UsageError(
            f"no stored run{what} to compare with in {config.getoption('benchmark_storage')}; "
            f"store one with --benchmark-save=NAME first"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End all workers."""
    session.config.stash[_BENCH].close()


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """The table."""
    facts = config.stash[_BENCH].facts
    if facts:
        terminalreporter.section("kernelproof: speed")
        terminalreporter.write(benchmark_report.table(facts, terminalreporter._tw.fullwidth))


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: Record) -> None:
    """Add the GPU and what belongs to it."""
    machine_info[benchmark_report.INFO] = benchmark_report.machine_info(machine())


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(
    benchmarksession: BenchmarkSession, machine_info: Record, compared_benchmark: Record
) -> None:
    """Refuse a run of another GPU, remark on what else matters, and keep the default silent.

    pytest-benchmark's own check warns about any difference, the CPU's clock of the moment included, and prints both
    records whole; after ours has spoken they are made equal.
    """
    stored = compared_benchmark["machine_info"]
    problem = benchmark_report.refusal(machine_info, stored)
    if problem:
        raise pytest.UsageError(problem)
    for remark in benchmark_report.remarks(machine_info, stored):
        benchmarksession.logger.info(remark)
    compared_benchmark["machine_info"] = machine_info
