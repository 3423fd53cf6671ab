"""What becomes of times: a clock for pytest-benchmark, plans, figures, what cannot be, and what may be compared."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from properties import benchmark_plugin, benchmark_report, selection, timing
from properties.benchmark_cases import Entry
from properties.cases import parse
from properties.options import ROOT
from properties.records import Record
from properties.timing import Bus, Clock

H100 = Bus(3.35e12, 50 << 20)


def test_a_bandwidth_above_the_cards_peak_is_invalid() -> None:
    nbytes = 2 << 30
    assert timing.impossible(nbytes / 3.1e12, nbytes / 3.0e12, nbytes, nbytes, H100) == ""
    said = timing.impossible(nbytes / 3.9e12, nbytes / 3.0e12, nbytes, nbytes, H100)
    assert said.startswith("invalid measurement: 3900 GB/s, while the card's memory can do at most 3350 GB/s")


def test_what_a_cache_may_keep_is_not_held_against_a_kernel() -> None:
    nbytes = 200 << 20  # four caches of 50 MiB: half of it need not pass the bus within the time
    assert timing.impossible(nbytes / 6e12, nbytes / 6e12, nbytes, nbytes, H100) == ""
    assert timing.impossible(nbytes / 7e12, nbytes / 6e12, nbytes, nbytes, H100) != ""


def test_more_than_the_cores_caches_can_do_is_invalid() -> None:
    nbytes = 8 << 20
    said = timing.impossible(2.7e-6, 44e-3, nbytes, nbytes, Bus.of_cores(2))
    assert said.startswith("invalid measurement: 3107 GB/s, while 2 cores' caches can do at most 2000 GB/s")
    assert "a core's cache" in timing.impossible(2.7e-6, 44e-3, nbytes, nbytes, Bus.of_cores(1))


def test_a_twentieth_of_a_copy_is_invalid_where_the_copy_is_of_many_bytes() -> None:
    nbytes = 128 << 20
    assert timing.impossible(2.3e-3, 44e-3, nbytes, nbytes, Bus()) == ""
    said = timing.impossible(2.1e-3, 44e-3, nbytes, nbytes, Bus())
    assert "a call takes 2.1 ms where a copy of the same bytes takes 44 ms" in said
    # An honest call beside other work, whose copy waited for a core in every round.
    assert timing.impossible(66e-6, 3.12e-3, 2 * 131584, 2 * 131584, Bus.of_cores(2)) == ""


def test_who_shares_a_card_is_seen_by_what_a_copy_reaches() -> None:
    card = Bus(3.35e12, 50 << 20, whole=True)
    nbytes = 1 << 30
    assert timing.shared(nbytes / 3.0e12, nbytes, card) == ""
    said = timing.shared(nbytes / 1.5e12, nbytes, card)
    assert said.startswith("something else uses the card: a copy moves 1500 GB/s, of 3350 that its memory can do")
    assert timing.shared(1e-3, 199 << 20, card) == "", "of so little a copy is slower anyhow"
    assert timing.shared(nbytes / 0.4e12, nbytes, H100) == "", "a seventh of a card has not all of its memory's speed"
    assert timing.shared(1.0, nbytes, Bus()) == ""


def test_short_calls_are_made_many_times_a_round_and_long_ones_once() -> None:
    assert timing.plan([1e-5, 1e-4]).calls == 100
    assert timing.plan([1e-3, 1e-4]).calls == 20
    assert timing.plan([3.0, 1.0]) == timing.Plan(timing.LEAST_ROUNDS, 1)
    assert timing.plan([1e-3, 1e-3]).rounds == timing.MOST_ROUNDS


def test_who_does_nothing_does_not_make_others_work_for_minutes() -> None:
    pilots = [3e-6, 0.06, 0.045]
    found = timing.plan(pilots)
    assert found.rounds * found.calls * sum(pilots) <= timing.CASE_SECONDS


@pytest.mark.parametrize("length", [1, 5, 64, 65, 1000, 89478485])
def test_blocks_lie_within_and_touch_both_ends(length: int) -> None:
    found = timing.blocks(length, 64, random.Random(3))  # noqa: S311 - a test is to be repeatable
    assert found[0].start == 0
    assert found[-1].stop == length
    assert sum(part.stop - part.start for part in found) <= max(64, min(length, 64))
    assert all(0 <= part.start < part.stop <= length for part in found)


def test_a_goal_is_met_missed_or_without_its_peer() -> None:
    goal = Entry(parse("shape=2x2"), "vs_eager", 1.8)
    assert goal.met({"vs_eager": 1.8}) is True
    assert goal.met({"vs_eager": 1.79}) is False
    assert goal.met({}) is None


# --- pytest-benchmark -------------------------------------------------------------------------------------------------

TESTS = """
import pytest
from properties.timing import Clock
clock = Clock()

@pytest.mark.benchmark(timer=clock.read)
def test_pedantic(benchmark):
    times = iter((0.25, 0.5, 0.125))
    benchmark.pedantic(lambda: clock.advance(next(times)), rounds=3)

@pytest.mark.benchmark(timer=clock.read)
def test_automatic(benchmark):
    clock.reset()
    benchmark(lambda: None)
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-ppytest_benchmark.plugin", "-q", *arguments]
    settings = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=60, check=False)


def test_times_reach_a_stored_run_and_calibration_says_that_it_cannot_work(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "test_speed.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    ended = run_pytest(folder, f"--benchmark-storage={folder / 'runs'}", "--benchmark-save=first", "-k", "pedantic")
    assert ended.returncode == 0, ended.stdout
    stored = json.loads(next((folder / "runs").glob("*/0001_first.json")).read_text())
    stats = stored["benchmarks"][0]["stats"]
    assert (stats["min"], stats["median"], stats["max"], stats["rounds"]) == (0.125, 0.25, 0.5, 3)
    ended = run_pytest(folder, f"--benchmark-storage={folder / 'runs'}", "--benchmark-compare=0001")
    assert "0001_first" in ended.stdout
    assert "use benchmark.pedantic(...)" in ended.stdout, "automatic mode ends at once, in words"
    assert "1 failed, 1 passed" in ended.stdout


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_the_clock_takes_no_time_that_is_none(seconds: float) -> None:
    with pytest.raises(ValueError, match="a measured time is a positive number"):
        Clock().advance(seconds)


def info(**changes: object) -> Record:
    ours = {"gpu": "NVIDIA H100 80GB HBM3", "driver": "580.1", "processor": "X", "torch": "2.11.0", "cuda": "13.0"}
    return {"node": "here", "cpu": {"hz_actual": [2500000000, 0]}, "kernelproof": ours | changes}


def test_only_another_clock_of_the_processor_does_not_matter() -> None:
    stored = info(clocks={"sm_mhz": 1755})
    stored["cpu"] = {"hz_actual": [1200000000, 0]}
    assert benchmark_report.refusal(info(), stored) == ""
    assert benchmark_report.remarks(info(), stored) == []


def test_a_run_of_another_gpu_is_refused_in_words() -> None:
    said = benchmark_report.refusal(info(), info(gpu="NVIDIA H200"))
    assert "measured on another GPU (NVIDIA H200) than this machine's (NVIDIA H100 80GB HBM3)" in said
    assert "another GPU (none)" in benchmark_report.refusal(info(), info(gpu=None))
    assert "does not say on which GPU" in benchmark_report.refusal(info(), {"node": "elsewhere"})


def test_another_driver_or_torch_is_remarked_upon() -> None:
    stored = info(driver="570.2", torch="2.9.1")
    assert benchmark_report.refusal(info(), stored) == ""
    assert benchmark_report.remarks(info(), stored) == [
        "the stored run had another GPU driver: 570.2, now 580.1",
        "the stored run had another torch: 2.9.1, now 2.11.0",
    ]


class StrawLogger:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, text: str) -> None:
        """Keep it."""
        self.said.append(text)


class StrawSession:
    """Has a logger, as pytest-benchmark's session has."""

    def __init__(self) -> None:
        self.logger: benchmark_plugin.Logger = StrawLogger()


def test_a_comparison_is_refused_or_remarked_upon_before_anything_is_measured() -> None:
    session, stored = StrawSession(), {"machine_info": info(torch="2.9.1")}
    session.logger = logger = StrawLogger()
    benchmark_plugin.pytest_benchmark_compare_machine_info(session, info(), stored)
    assert logger.said == ["the stored run had another torch: 2.9.1, now 2.11.0"]
    assert stored["machine_info"] == info(), "so that the default check, which runs next, finds no difference"
    with pytest.raises(pytest.UsageError, match="measured on another GPU"):
        benchmark_plugin.pytest_benchmark_compare_machine_info(session, info(), {"machine_info": info(gpu="L4")})


@pytest.mark.parametrize(
    ("markers", "asked"),
    [
        ("benchmark", True),
        ("benchmark and not gpu", True),
        ("correctness or benchmark", True),
        ("", False),
        ("correctness", False),
        ("not correctness and not benchmark and not mutants and not slow", False),
        ("not (benchmark or slow)", False),
    ],
)
def test_benchmarks_are_asked_for_by_name_only(markers: str, asked: bool) -> None:
    assert selection.wanted(markers) is asked


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"markexpr": "benchmark", "numprocesses": 2}, "leave -n (and --dist) out"),
        ({"markexpr": "benchmark", "isolation": "none"}, "leave --isolation=none out"),
        ({"benchmark_compare": "properties/test_benchmark.py"}, "write --benchmark-compare=0001, or put paths first"),
        ({"benchmark_compare": "test_benchmark.py::test_time_of_a_call"}, "for the number of a stored run"),
        ({"benchmark_compare": "."}, "for the number of a stored run"),
        ({"benchmark_compare": "0001", "markexpr": "benchmark"}, ""),
        ({"markexpr": "not benchmark", "numprocesses": 2}, ""),
    ],
)
def test_what_cannot_be_meant_is_said_in_words(given: dict[str, object], said: str) -> None:
    problem = benchmark_plugin.usage_problem(lambda name, default: given.get(name, default))
    assert said in problem
    assert bool(problem) is bool(said)


def test_a_histogram_without_pygal_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_plugin, "find_spec", lambda _: None)
    said = benchmark_plugin.usage_problem({"benchmark_histogram": "speed"}.get)
    assert "draws with pygal" in said


def test_runs_are_stored_in_the_checkout_whatever_the_current_folder() -> None:
    assert benchmark_plugin.storage("file://./.benchmarks") == str(ROOT / ".benchmarks")
    assert benchmark_plugin.storage("file:///elsewhere") == "file:///elsewhere"
