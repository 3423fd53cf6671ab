"""pytest's side of the gate: every case is a test that fails unless it is as fast as its base; one record for all.

A case that is expected and that no test measures has a test all the same: it fails and says so. What pytest leaves out
(``-k``, ``-m``, a skip, ``-x``) is in the record with its reason, and ends the run with a failure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci import gate_record
from ci.gate_cases import CasesError
from ci.gate_record import DESELECTED, FAILED, SKIPPED, Case

from . import gate, gate_options, gate_report
from .benchmark_plugin import storage
from .options import UsageError
from .plugin import begin_anew, run_of
from .progress import Bar
from .selection import wanted
from .targets import machine

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_GATE = pytest.StashKey["gate.Gate"]()
_BAR = pytest.StashKey[Bar]()
#: Of this process; `pytest_runtest_logreport` is given no config.
_current: dict[str, gate.Gate] = {}
_NODE = "test_is_as_fast_as_its_base["


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `gate_options.OPTIONS`."""
    group = parser.getgroup("kernelproof-gate", "kernelproof: the gate (pytest -m gate; ci/gate is its command)")
    for flag, metavar, text in gate_options.OPTIONS:
        group.addoption(flag, metavar=metavar, default=None, help=text)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the gate, where it is asked for."""
    _current.clear()
    if not wanted(str(config.getoption("markexpr") or ""), "gate") or hasattr(config, "workerinput"):
        return
    try:
        made = _make(config)
    except (UsageError, CasesError) as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_GATE] = _current["gate"] = made
    if several := _several(config.getoption):
        _write(made)
        raise pytest.UsageError(several)


def _make(config: pytest.Config) -> gate.Gate:
    options = run_of(config).options
    if len(options.candidates) != 1:
        raise UsageError(f"a gate has one candidate, got {len(options.candidates)}")
    return gate.Gate(
        candidate=options.candidates[0],
        options=gate_options.read(config.getoption, config.invocation_params.dir),
        target="cpu" if options.targets == ("cpu",) else "cuda",
        machine=machine(),
        limits=options.limits,
        cache=options.cache,
        storage=Path(storage(str(config.getoption("benchmark_storage", "file://./.benchmarks")))),
        disabled=_several(config.getoption) or _switched_off(config.getoption),
    )


def _several(option: Callable[..., object]) -> str:
    """Why nothing can be measured under xdist; "" without it."""
    if option("numprocesses", None) or option("dist", "no") != "no":
        return "-m gate measures one thing at a time: leave -n (and --dist) out"
    if option("isolation", None) == "none":
        return "-m gate measures in processes of its own: leave --isolation=none out"
    return ""


def _switched_off(option: Callable[..., object]) -> str:
    for name in ("benchmark_disable", "benchmark_skip"):
        if option(name, False):
            return f"--{name.replace('_', '-')} switches measuring off"
    return ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every case, expected or there, is a test."""
    if "duel" in metafunc.fixturenames:
        made = metafunc.config.stash.get(_GATE, None)
        metafunc.parametrize("duel", made.names if made else [], indirect=True)


@pytest.fixture
def duel(request: pytest.FixtureRequest) -> Callable[[], Case]:
    """Measures the test's case."""
    made, name = request.config.stash[_GATE], request.param

    def run() -> Case:
        try:
            return made.measure(name)
        except Exception as error:
            # An error of the gate itself: no verdict may come of it.
            made.internal_errors.append(f"{name}: {type(error).__name__}: {error}")
            made.miss(name, FAILED, f"an error of the gate itself: {type(error).__name__}: {error}")
            raise

    return run


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Note what was left out."""
    for item in items:
        if (made := _current.get("gate")) and (name := _name_of(item.name)) in made.names:
            made.miss(name, DESELECTED, "-k, -m or --deselect leaves its test out")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what was skipped, or failed before it was measured."""
    made, name = _current.get("gate"), _name_of(report.nodeid)
    if made is None or name not in made.names or report.passed:
        return
    if report.skipped:
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        made.miss(name, SKIPPED, f"its test was skipped: {said.removeprefix('Skipped: ')}")
    else:
        made.miss(name, FAILED, str(report.longrepr).strip().splitlines()[-1][:300])


def _name_of(node: str) -> str:
    """The case of a test's name; "" where it is no test of the gate."""
    return node.partition(_NODE)[2].removesuffix("]")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """No dots and letters of ours between the progress: the table at the end has it all."""
    if report.when == "call" and _NODE in report.nodeid:
        return report.outcome, "", report.outcome.upper()
    return None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Show progress on the terminal itself, past pytest's capturing."""
    made = session.config.stash.get(_GATE, None)
    if made is not None:
        begin_anew("--gate-json", made.options.record)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if made is not None and reporter is not None:
        bar = session.config.stash[_BAR] = Bar(reporter._tw._file, len(made.names))
        made.say = lambda line: _say(reporter, bar, f"kernelproof: {line}")
        made.tell = lambda doing: bar.show(doing, len(made.outcomes))


def _say(reporter: TerminalReporter, bar: Bar, line: str) -> None:
    """Say a line while a test runs, whose output pytest keeps to itself."""
    if bar.say(line):
        return
    capturing = reporter.config.pluginmanager.get_plugin("capturemanager")
    with capturing.global_and_fixture_disabled() if capturing else contextlib.nullcontext():
        reporter.ensure_newline()
        reporter.write_line(line)
        reporter.flush()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End all workers, write the record, and let the whole verdict be that of the run."""
    made = session.config.stash.get(_GATE, None)
    if made is None:
        return
    made.close()
    if (bar := session.config.stash.get(_BAR, None)) is not None:
        bar.close()
    found = _write(made)
    if found.exit_code and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_internalerror(excrepr: object) -> None:
    """Remember that the run itself broke."""
    if made := _current.get("gate"):
        made.internal_errors.append(str(excrepr)[-4000:])


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """The table."""
    made = config.stash.get(_GATE, None)
    if made is not None:
        terminalreporter.section("kernelproof: the gate")
        terminalreporter.write(gate_report.table(_record(made), terminalreporter._tw.fullwidth))


def _record(made: gate.Gate) -> gate_record.Record:
    """The record, in which both are called what the options say: files of two commits have one name."""
    found, options = made.record(), made.options
    return replace(
        found,
        candidate=replace(found.candidate, label=options.candidate_label or found.candidate.label),
        base=replace(found.base, label=options.base_label or found.base.label),
    )


def _write(made: gate.Gate) -> gate_record.Record:
    found, path = _record(made), made.options.record
    if path is not None:
        try:
            path.write_text(gate_record.to_json(found), encoding="utf-8")
        except OSError as error:
            raise pytest.UsageError(f"--gate-json={path}: {error.strerror}") from None
    return found
