"""pytest's side of progress: on a terminal one line says which test runs, how many are done and how long is left.

It stands in the place of pytest's dots for what takes long: ``-m correctness``, ``-m mutants``, ``-m benchmark`` and
``-m sanitizer`` (the gate has its own). With ``-v``, and where nobody looks on, all is as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .progress import Bar
from .selection import wanted

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_LONG = ("correctness", "mutants", "benchmark", "sanitizer")
_NAME = "kernelproof-progress"


class _Progress:
    """The hooks of a run that shows it."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter
        self._bar: Bar | None = None
        self._done = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Now it is known how many there are."""
        if session.items:
            self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Every process collects all of them."""
        if self._bar is None and ids:
            self._begin(len(ids))

    def _begin(self, total: int) -> None:
        self._reporter.showfspath = False
        self._bar = Bar(self._reporter._tw._file, total)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which; of several at once, which began last."""
        if self._bar is not None:
            name = nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
            self._bar.show(name.replace("[", " (").replace("]", ")"), self._done)

    def pytest_runtest_logfinish(self) -> None:
        """One more is done."""
        self._done += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dots and letters between the progress."""
        if self._bar is None or (report.when != "call" and report.passed):
            return None
        category = report.outcome if report.when == "call" or report.skipped else "error"
        return category, "", ""

    def pytest_sessionfinish(self) -> None:
        """Take the line away before anything is said of the results."""
        if self._bar is not None:
            self._bar.close()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show it where somebody looks on and the run is a long one."""
    reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.get_verbosity() > 0:
        return
    if reporter.isatty and any(wanted(str(config.getoption("markexpr") or ""), each) for each in _LONG):
        config.pluginmanager.register(_Progress(reporter), _NAME)
