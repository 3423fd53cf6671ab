"""The pytest plugin: turns options into a `Session`, properties into reports, and reports into summary and JSON file.

Facts travel in ``user_properties``, so the summary is the same under xdist, where tests run in other processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from ci import older, wording
from ci.exits import STARTED_BY

from . import cards, parent, records, summary
from .examination import Property
from .l1_norm import L1_NORM
from .options import OPTIONS, ROOT, Options, UsageError, read
from .records import Gathered, Record
from .selection import exact, unmatched, wanted
from .session import Seat, Session, seats
from .targets import machine
from .testing import Examine

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_RUN = pytest.StashKey["Run"]()
KEY = "kernelproof"
_INTERNAL = "kernelproof-internal-error"
#: Markers that are left out unless ``-m`` names them.
_ON_REQUEST = ("benchmark", "gate", "slow", "mutants", "sanitizer")
#: Markers that no test of the project itself bears.
_OF_THE_SUITE = ("correctness", "benchmark", "mutants")


class Run:
    """What one pytest process knows of its run."""

    def __init__(self, options: Options, seed: int) -> None:
        self.options = options
        self.session = Session(options, machine(), seed)
        self.seats, not_run = seats(options, machine())
        self.gathered = Gathered(not_run=not_run)
        self.told: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self.unmatched = ""


def run_of(config: pytest.Config) -> Run:
    """The run of this process."""
    return config.stash[_RUN]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add every option of `options.OPTIONS`; the help names the environment variable."""
    group = parser.getgroup("kernelproof", "kernelproof: judging a candidate")
    for option in OPTIONS:
        text = f"{option.help} [{option.variable}]".replace("%", "%%")
        if option.default:
            text = f"{option.help} (default: {option.default}) [{option.variable}]".replace("%", "%%")
        if not option.metavar:
            group.addoption(option.flag, action="store_true", default=False, help=text)
        elif option.repeatable:
            group.addoption(option.flag, action="append", metavar=option.metavar, default=[], help=text)
        else:
            group.addoption(option.flag, metavar=option.metavar, default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; what cannot be meant stops the run before anything is collected."""
    import kernels

    if Path(kernels.__file__ or "").resolve().parent != ROOT / "kernels":
        raise pytest.UsageError(f"`kernels` is {kernels.__file__}, not this checkout's; run pytest from {ROOT}")
    _take_a_card(config)
    # One thread judges: values come in blocks that fit a core's cache, and the candidate's threads want the rest.
    torch.set_num_threads(1)
    try:
        options = read(config.getoption, os.environ, config.invocation_params.dir, L1_NORM.shipped)
    except UsageError as error:
        path = config.getoption("report_json")
        if path:
            _write(config.invocation_params.dir / path, records.usage_error_report(str(error)))
        raise pytest.UsageError(str(error)) from None
    config.stash[_RUN] = Run(options, _seed(config))
    _end_with_others(config)


def _end_with_others(config: pytest.Config) -> None:
    """Have SIGTERM end this process as an interrupt does, and be sent when the process that has started it ends.

    Under xdist the first process judges nobody: SIGTERM ends it at once, and so reaches the others.
    """
    if hasattr(config, "workerinput") or os.environ.get(STARTED_BY) == str(os.getppid()):
        parent.at_its_end(signal.SIGTERM)
    shares = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and not shares:
        with contextlib.suppress(ValueError):  # in a thread of somebody's program
            signal.signal(signal.SIGTERM, _end_in_good_order)


def _end_in_good_order(number: int, _: object) -> None:
    """The handler of SIGTERM: ends the run, and its workers, as an interrupt does; the next one ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt(signal.Signals(number).name)


def pytest_unconfigure() -> None:
    """Give SIGTERM back."""
    if signal.getsignal(signal.SIGTERM) is _end_in_good_order:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _take_a_card(config: pytest.Config) -> None:
    """Under xdist, let this process and what it starts see its own card first (`cards`); nobody has counted yet."""
    workerinput = getattr(config, "workerinput", {})
    if given := workerinput.get("kernelproof_cards"):
        os.environ[cards.VARIABLE] = cards.turned(given, workerinput["workerid"])


def _seed(config: pytest.Config) -> int:
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        return int(workerinput["kernelproof_seed"])
    given = config.getoption("hypothesis_seed", None)
    return int(given) if given is not None and str(given).isdigit() else random.SystemRandom().randrange(1 << 32)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Give every xdist worker the run's seed, and the cards that there are."""
    found = cards.visible(os.environ.get(cards.VARIABLE), torch.cuda.device_count())
    node.workerinput["kernelproof_cards"] = found  # type: ignore[attr-defined]
    node.workerinput["kernelproof_seed"] = node.config.stash[_RUN].session.seed  # type: ignore[attr-defined]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is judged, where, and how."""
    run = config.stash[_RUN]
    return summary.header(run.options, machine(), run.session.seed, run.gathered.not_run)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every property is a test for every candidate and target."""
    if "seat" in metafunc.fixturenames:
        run = metafunc.config.stash[_RUN]
        seats = [
            pytest.param(each, marks=pytest.mark.xdist_group(name), id=name)
            for each, name in zip(run.seats, _ids(run.seats), strict=True)
        ]
        nobody = pytest.param(None, marks=pytest.mark.skip(reason="not-judged: no target to run on"), id="nobody")
        metafunc.parametrize("seat", seats or [nobody], scope="session", indirect=True)


def _ids(chosen: list[Seat]) -> list[str]:
    """Names of seats; files of one name get a number."""
    names = [str(each) for each in chosen]
    return [f"{name}-{index}" if names.count(name) > 1 else name for index, name in enumerate(names)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the project's own tests where they are if only the suite's are asked for: most of a start is theirs."""
    own = collection_path in (ROOT / "ci", ROOT / "properties" / "meta")
    return True if own and config.getoption("markexpr") in _OF_THE_SUITE else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let ``-k`` find a property by the name that reports use."""
    name = getattr(getattr(item, "obj", None), "kernelproof_property", None)
    if name is not None:
        item.extra_keyword_matches.add(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is only run when ``-m`` names it, with ``--case`` all but the one property, and what ``-k`` does.

    The latter only where it consists of names of properties: see `selection`.
    """
    run = config.stash[_RUN]
    chosen = config.getoption("markexpr") or ""
    named = exact(config.option.keyword) if wanted(chosen, "correctness") else None
    if named is not None:
        config.option.keyword = ""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        asked = not any(item.get_closest_marker(name) and name not in chosen for name in _ON_REQUEST)
        if run.options.case is not None and item.get_closest_marker("correctness"):
            name = getattr(getattr(item, "obj", None), "kernelproof_property", None)
            asked = asked and name in ("contact", run.options.case[0].name)
        if named is not None:
            asked = asked and named(getattr(getattr(item, "obj", None), "kernelproof_property", ""))
        (kept if asked else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what was left out."""
    if items:
        items[0].config.stash[_RUN].gathered.tests["deselected"] += len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what an xdist worker left out: each collects, and so leaves out, the same."""
    tests = node.config.stash[_RUN].gathered.tests  # type: ignore[attr-defined]
    left_out = getattr(node, "workeroutput", {}).get("kernelproof_deselected", 0)
    tests["deselected"] = max(tests["deselected"], left_out)


@pytest.fixture(scope="session")
def seat(request: pytest.FixtureRequest) -> Iterator[Seat]:
    """The candidate and target of a test; its workers end after its last test."""
    chosen: Seat = request.param
    yield chosen
    request.config.stash[_RUN].session.leave(chosen)


@pytest.fixture
def examine(request: pytest.FixtureRequest, seat: Seat) -> Examine:
    """Examine a property of the test's candidate."""
    run = request.config.stash[_RUN]

    def run_it(prop: Property) -> None:
        try:
            who, what = run.session.contact(seat) if prop.name == "contact" else run.session.examine(seat, prop)
        except Exception as error:
            # An error of the judge itself: no verdict may come of it (see `records.Gathered.internal_errors`).
            request.node.user_properties.append((_INTERNAL, f"{prop.name}: {type(error).__name__}: {error}"))
            raise
        request.node.user_properties.append((KEY, json.dumps([who, what])))
        if what["outcome"] == "failed":
            told = run.told.setdefault((who["path"], who["target"]), set())
            pytest.fail(summary.failure(who, what, told), pytrace=False)
        if what["outcome"] == "not-examined":
            pytest.skip(f"not-examined: {what['reason']}")

    return run_it


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Gather what a test found; the report may come from another process."""
    run = _current.get("run")
    if run is None:
        return
    tests = run.gathered.tests
    if report.when == "call" and report.outcome in ("passed", "failed"):
        tests[report.outcome] += 1
    elif report.skipped:
        tests["skipped"] += 1
    elif report.failed:
        tests["errors"] += 1
    if report.when == "teardown":
        for name, text in report.user_properties:
            if name == _INTERNAL:
                run.gathered.internal_errors.append(str(text))
            if name == KEY:
                _gather(run.gathered, *json.loads(str(text)))


def _gather(gathered: Gathered, who: Record, what: Record) -> None:
    gathered.records.append((who, what))
    where = wording.place(what["name"], who["name"], who["target"])
    if what["outcome"] != "not-examined":
        gathered.not_run += [(f"{where}, {case}", why) for case, why in what["not_run"].items()]
    if what["outcome"] == "not-examined" and what["name"] != "contact" and who["broken"] is None:
        gathered.not_run.append((where, what["reason"]))


#: `pytest_runtest_logreport` is given no config: the run of this process is kept here between configure and finish.
_current: dict[str, Run] = {}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make this process's run known to `pytest_runtest_logreport`; an older report goes, before anything can end it."""
    run = _current["run"] = session.config.stash[_RUN]
    if not hasattr(session.config, "workerinput"):
        begin_anew("--report-json", run.options.report_json)


def begin_anew(flag: str, path: Path | None) -> None:
    """Take an older report away.

    Raises:
        pytest.UsageError: it stays.
    """
    try:
        older.remove(path)
    except OSError as error:
        raise pytest.UsageError(f"{flag}={path}: {error.strerror}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """End all workers, and remember that the run did not come to its end: what was judged is no verdict."""
    run = _current.get("run")
    if run is not None:
        run.session.close()
        run.gathered.interrupted = True
        run.gathered.internal_errors.append(f"the run was ended early: {str(excinfo.value) or excinfo.typename}")


def pytest_internalerror(excrepr: object) -> None:
    """Remember that the run itself broke."""
    run = _current.get("run")
    if run is not None:
        run.gathered.internal_errors.append(str(excrepr)[-4000:])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End all workers and write the report file (not in an xdist worker)."""
    run = session.config.stash[_RUN]
    run.session.close()
    if run.options.require_gpu and not machine().gpu:
        run.gathered.tests["failed"] += 1
        run.gathered.not_run.append(("cuda", f"--require-gpu, and there is no usable GPU: {machine().no_gpu}"))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kernelproof_deselected"] = run.gathered.tests["deselected"]
    keyword = session.config.getoption("keyword")
    asked = run.options.case is None and wanted(session.config.getoption("markexpr") or "", "correctness")
    if keyword and asked and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        run.unmatched = unmatched(keyword)
    if run.options.report_json is not None and not hasattr(session.config, "workerinput"):
        _write(run.options.report_json, _report(run))


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """What was judged, how near to the bounds, and what was not run; nothing where no property was asked for."""
    run = config.stash[_RUN]
    nowhere = not run.seats and run.gathered.tests["skipped"]
    lacking = run.options.require_gpu and not machine().gpu
    if run.unmatched and run.options.report_json is None:  # who reads the report says it
        terminalreporter.write_line(f"kernelproof: {run.unmatched}", red=True)
    if run.gathered.records or nowhere or lacking:
        terminalreporter.section("kernelproof")
        terminalreporter.write(summary.text(_report(run), terminalreporter._tw.fullwidth))


def _report(run: Run) -> Record:
    if run.unmatched:
        return records.usage_error_report(run.unmatched)
    return records.assemble(run.gathered, run.options, machine(), run.session.seed)


def _write(path: Path, report: Record) -> None:
    try:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise pytest.UsageError(f"--report-json={path}: {error.strerror}") from None
