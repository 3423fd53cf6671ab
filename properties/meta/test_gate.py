"""The gate end to end on a CPU, with tiny cases and real workers; and every way in which a case may come to nothing."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from ci import fakes, gate_cases, gate_record, test_gate_base
from ci.gate_base import Repository
from ci.gate_record import Case
from kernels.folder import cache_folder
from properties import card, gate, gate_plugin, gate_report, protocol, verdicts
from properties.benchmark_cases import Entry, entries
from properties.benchmarks import Lineup, label
from properties.cases import parse
from properties.duel import Duel
from properties.gate_options import fraction, read
from properties.l1_norm import L1_NORM
from properties.limits import Limits
from properties.options import ROOT, UsageError
from properties.process import Nursery, WorkerProcess, nursery_environment
from properties.progress import Bar
from properties.targets import machine
from properties.timed_input import TimedInput

from .gates import CASES, COARSE, RIGHT, SLOW, MakeGate, measured, reasons, written

# --- end to end -------------------------------------------------------------------------------------------------------


def test_identical_code_is_the_same_and_is_named_so(make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Duel._time

    def steady(duel: Duel, name: str, calls: int) -> float:
        timed(duel, name, calls)
        return 1e-3  # what other people's jobs do to a call's time may leave any case undecided

    monkeypatch.setattr(Duel, "_time", steady)
    found = measured(make_gate())
    assert (found.verdict, found.exit_code, found.same_code) == ("same", 0, True)
    (case,) = found.cases
    assert (case.shape, case.dtype, case.layout, case.bytes) == (
        "256x8192",
        "float32",
        "contiguous",
        2 * 256 * 8192 * 4,
    )
    assert case.control is not None
    assert "A/A: candidate and base are the same code" in gate_report.table(found, 140)


def test_identical_code_is_not_accused_whatever_others_do_to_its_times(make_gate: MakeGate) -> None:
    found = measured(make_gate())
    assert (found.verdict, found.exit_code) in {("same", 0), ("undecided", 75)}, found.cases
    (case,) = found.cases
    assert case.rounds >= verdicts.LEAST_ROUNDS


def test_where_nothing_was_measured_a_line_stays_a_line_and_no_figure_is_explained() -> None:
    found = fakes.gate(fakes.gate_case(verdict="not-measured", reason="no-gpu", text="no GPU here; " * 20))
    (line,) = gate_report.table(found, 100).splitlines()
    assert line.startswith("  not-measured (no-gpu): 4096x4096-float32: no GPU here;")


def test_code_that_does_its_work_six_times_is_slower(make_gate: MakeGate) -> None:
    found = measured(make_gate(SLOW))
    assert (found.verdict, found.exit_code, found.same_code) == ("slower", 1, False)
    assert "slower" in gate_report.table(found, 140)


def test_code_that_is_fast_and_wrong_is_not_measured(make_gate: MakeGate) -> None:
    found = measured(make_gate("return 2 * x"))
    assert (found.verdict, found.exit_code) == ("not-measured", 69)
    assert found.cases[0].reason == "invalid"
    assert "not-measured (invalid): 256x8192-float32: invalid measurement" in gate_report.table(found, 200)


def test_pytest_fails_for_a_slower_case_says_so_to_junit_and_accounts_for_what_was_deselected(tmp_path: Path) -> None:
    cases = tmp_path / "cases.toml"
    cases.write_text(f'{CASES.partition("[cuda]")[0]}"64x64-float32" = "shape=64x64"\n', encoding="utf-8")
    candidate, base = written(tmp_path, "candidate", SLOW), written(tmp_path, "base", RIGHT)
    kept, junit = tmp_path / "gate.json", tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gate", "-k", "8192", "-pno:cacheprovider"]
    command += [f"--candidate={candidate}", f"--against={base}", f"--gate-cases={cases}", "--target=cpu"]
    command += [f"--minimum-effect={COARSE}", f"--gate-json={kept}", f"--junitxml={junit}", "properties/test_gate.py"]
    ended = subprocess.run(command, cwd=ROOT, env=nursery_environment(), capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1, ended.stdout
    found = gate_record.read(kept.read_text(encoding="utf-8"))
    assert [(case.name, case.verdict, case.reason) for case in found.cases] == [
        ("256x8192-float32", "slower", ""),
        ("64x64-float32", "not-measured", "deselected"),
    ]
    (failure,) = ElementTree.fromstring(junit.read_text(encoding="utf-8")).iter("failure")  # noqa: S314 - our own pytest's
    assert str(failure.get("message")).startswith("Failed: slower: +")
    assert "256x8192-float32  slower" in ended.stdout


@pytest.mark.gpu
@pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu)
@pytest.mark.usefixtures("alone_on_the_card")
def test_on_a_card_the_shipped_kernel_is_the_same_as_itself_and_five_percent_more_is_slower(
    make_gate: MakeGate,
) -> None:
    cases = '[cuda]\n"65536x4095-float32" = "shape=65536x4095"\n"16x65535-float32" = "shape=16x65535"\n'
    shipped = "from kernels.l1_norm import l1_norm\n        {}return l1_norm(x)"
    # A twentieth of the bytes is read and written once more.
    planted = shipped.format("torch.as_strided(x, (x.numel() // 20,), (1,), x.storage_offset()).clone()\n        ")
    settings = {"cases": cases, "target": "cuda", "minimum": verdicts.MINIMUM}
    settings["cache"] = cache_folder(os.environ, Path.home(), sys.platform)
    alike = measured(make_gate(shipped.format(""), shipped.format(""), **settings))
    assert (alike.verdict, alike.exit_code, alike.same_code) == ("same", 0, True)
    slower = measured(make_gate(planted, shipped.format(""), **settings))
    assert [case.verdict for case in slower.cases] == ["slower", "slower"], [case.text for case in slower.cases]


# --- what really runs -------------------------------------------------------------------------------------------------


def libraries(path: Path, nursery: Nursery, cache: Path) -> set[str]:
    """The extension libraries that the process of the kernel in this file has mapped after a call."""
    lineup = Lineup(L1_NORM, path, "cpu", Limits(), nursery, cache, ())
    try:
        view = protocol.to_message(TimedInput(parse("shape=64x256"), lineup.slots()).view)
        lineup.ask("candidate", {"op": "prepare", "view": view, "buffers": 1}, 300.0)
        worker = lineup.runners["candidate"]._worker
        assert isinstance(worker, WorkerProcess)
        maps = Path(f"/proc/{worker._pid}/maps").read_text(encoding="utf-8").splitlines()
        files = {line.split(maxsplit=5)[-1] for line in maps}
        # The environment lies in the user's cache, too, with libraries of its own.
        return {each for each in files if each.startswith(str(cache / "extensions")) and each.endswith(".so")}
    finally:
        lineup.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what a process has mapped")
def test_base_and_candidate_differ_in_what_runs(timed_nursery: Nursery, tmp_path: Path) -> None:
    # A repository of the kernel whose base has another C++ source; both are loaded as the gate loads them.
    kernels = tmp_path / "a checkout" / "kernels"
    shutil.copytree(ROOT / "kernels", kernels, ignore=shutil.ignore_patterns("__pycache__"))
    (source,) = (kernels / "cpu").glob("*.cpp")
    now = source.read_text(encoding="utf-8")
    source.write_text(f"{now}// As it was before.\n", encoding="utf-8")
    for words in (("init", "-q", "-b", "main"), ("add", "--all"), ("commit", "-q", "-m", "base")):
        test_gate_base.git(kernels.parent, *words)
    source.write_text(now, encoding="utf-8")
    candidate, shipped = kernels / "l1_norm.py", ROOT / "kernels" / "l1_norm.py"
    # The user's cache: the shipped kernel is built there already.
    cache, found = cache_folder(os.environ, Path.home(), sys.platform), Repository(candidate)
    with found.laid_out(*found.base(None), tmp_path / "the cache") as base:
        assert gate.digest(base.path) != gate.digest(candidate)
        old, new = (libraries(path, timed_nursery, cache) for path in (base.path, candidate))
    assert len(old) == len(new) == 1
    assert old != new
    assert Path(*old).read_bytes() != Path(*new).read_bytes()
    assert gate.digest(shipped) == gate.digest(candidate), "the same files in another place: A/A"
    assert libraries(shipped, timed_nursery, cache) == new


# --- what comes to nothing --------------------------------------------------------------------------------------------


def test_the_committed_list_is_what_the_benchmarks_measure() -> None:
    for target in ("cuda", "cpu"):
        suite = {label(entry.case): str(entry.case) for entry in entries(target)}
        assert gate_cases.read(gate_cases.COMMITTED, target) == suite, "change ci/baselines/cases.toml, too"


def test_a_case_that_is_missing_or_renamed_is_not_measured_and_a_new_one_is_noted(
    make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[cpu]\n"old" = "shape=2x2,dtype=float32,values=signed,seed=0"\n"gone" = "shape=3x3"\n'
    monkeypatch.setattr(gate.Gate, "_suite", lambda _: {"new": Entry(parse("shape=2x2"))})
    monkeypatch.setattr(gate.Gate, "_duel", lambda _, name: Case(name, "same", ratio=gate_record.Estimate(1, 1, 1)))
    made = make_gate(cases=text)
    assert made.names == ["old", "gone", "new"]
    found = measured(made)
    assert reasons(found) == {"old": "renamed", "gone": "missing", "new": ""}
    assert (found.verdict, found.exit_code) == ("not-measured", 69)
    assert found.notes[0].startswith("new is not on the list of expected cases")


def test_without_a_base_nothing_is_measured(make_gate: MakeGate) -> None:
    found = measured(make_gate(base=None))
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "no-baseline"}, 69)


def test_a_base_that_does_not_load_is_none(make_gate: MakeGate) -> None:
    found = measured(make_gate(base="return x +"))
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "no-baseline"}, 69)
    assert found.cases[0].text.startswith("base: does not parse")


def test_without_a_gpu_nothing_is_measured_unless_the_cpu_is_asked_for(make_gate: MakeGate) -> None:
    none = replace(machine(), gpu="", no_gpu="no CUDA device is visible")
    found = measured(make_gate(target="cuda", machine=none))
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "no-gpu"}, 69)
    assert found.cases[0].text == "no CUDA device is visible; --target=cpu measures on the CPU instead"


def test_what_never_ran_was_skipped(make_gate: MakeGate) -> None:
    found = make_gate().record()
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "skipped"}, 69)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"numprocesses": 2}, "leave -n (and --dist) out"),
        ({"isolation": "none"}, "leave --isolation=none out"),
        ({"benchmark_disable": True}, "--benchmark-disable switches measuring off"),
        ({"benchmark_skip": True}, "--benchmark-skip switches measuring off"),
        ({}, ""),
    ],
)
def test_measuring_that_is_switched_off_is_said(make_gate: MakeGate, given: dict[str, object], said: str) -> None:
    def option(name: str, default: object) -> object:
        return given.get(name, default)

    why = gate_plugin._several(option) or gate_plugin._switched_off(option)
    assert said in why
    assert bool(why) is bool(said)
    if why:
        assert reasons(measured(make_gate(disabled=why))) == {"256x8192-float32": "disabled"}


def test_what_pytest_leaves_out_is_in_the_record(make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch) -> None:
    node = "test_is_as_fast_as_its_base[256x8192-float32]"
    skipped = SimpleNamespace(nodeid=f"properties/test_gate.py::{node}", passed=False, skipped=True)
    skipped.longrepr = ("test_gate.py", 3, "Skipped: on Tuesdays")
    broken = SimpleNamespace(nodeid=skipped.nodeid, passed=False, skipped=False, longrepr="E  fixture 'x' not found")
    cases: tuple[tuple[Callable[..., None], object, str, str], ...] = (
        (gate_plugin.pytest_deselected, [SimpleNamespace(name=node)], "deselected", "leaves its test out"),
        (gate_plugin.pytest_runtest_logreport, skipped, "skipped", "on Tuesdays"),
        (gate_plugin.pytest_runtest_logreport, broken, "failed", "fixture 'x' not found"),
    )
    for hook, told, reason, text in cases:
        made = make_gate()
        monkeypatch.setitem(gate_plugin._current, "gate", made)
        hook(told)
        (case,) = made.record().cases
        assert (case.reason, text in case.text) == (reason, True)


# --- the parts --------------------------------------------------------------------------------------------------------


def test_an_error_of_the_gate_itself_is_no_verdict(make_gate: MakeGate) -> None:
    made = make_gate()
    made.internal_errors.append("KeyError: 'x'")
    assert made.record().exit_code == 70


def test_the_digest_is_that_of_all_sources_of_a_package_and_of_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("", encoding="utf-8")
    kernel = written(tmp_path, "kernel", RIGHT)
    first = gate.digest(kernel)
    (tmp_path / "notes.md").write_text("x", encoding="utf-8")
    assert gate.digest(kernel) == first
    (tmp_path / "device.cuh").write_text("x", encoding="utf-8")
    second = gate.digest(kernel)
    (tmp_path / "device.cuh").rename(tmp_path / "other.cuh")
    assert len({first, second, gate.digest(kernel)}) == 3
    (tmp_path / "__init__.py").unlink()
    lone = gate.digest(kernel)
    assert gate.digest(kernel.rename(tmp_path / "renamed.py")) == lone, "a lone file's name does not matter"


@pytest.mark.parametrize(("text", "value"), [("0.03", 0.03), ("3%", 0.03), (".5", 0.5), ("2.5%", 0.025)])
def test_a_share_is_written_in_two_ways(text: str, value: float) -> None:
    assert fraction(text) == pytest.approx(value)


def test_options_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    for given, said in (
        ({"minimum_effect": "3"}, "expected a share between 0 and 1"),
        ({"against": "nowhere.py"}, "no such file"),
        ({"against": "a.py", "stored": "1"}, "a gate has one base"),
    ):
        with pytest.raises(UsageError, match=said):
            read(given.get, tmp_path)


class Terminal(io.StringIO):
    """A stream that is a terminal, or is none."""

    def __init__(self, real: bool) -> None:
        super().__init__()
        self.real = real

    def isatty(self) -> bool:
        """Whether it is one."""
        return self.real


@pytest.mark.parametrize("real", [True, False])
def test_progress_is_shown_on_a_terminal_and_nowhere_else(real: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal(real)
    bar = Bar(stream, 33)
    bar.show("65536x4095-float32: building and warming up the base", 12)
    assert bar.say("waiting for another") is real
    bar.close()
    assert ("12/33" in stream.getvalue()) is real
    assert ("65536x4095-float32: building and warming up the…" in stream.getvalue()) is real, "cut off, not wrapped"
    assert ("waiting for another" in stream.getvalue()) is real
    assert real or not stream.getvalue()


def test_reasons_for_low_clocks_are_words_and_idling_is_none() -> None:
    assert card.reasons(0x1) == set()
    assert card.reasons(0x1 | 0x4 | 0x40) == {"power cap", "temperature (hardware)"}
