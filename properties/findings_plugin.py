"""pytest's side of findings: one block for each fault instead of one for each property that meets it.

A fault in the values fails nearly every property. What pytest shows of failed tests is only what broke in the judge;
what was found stands before the summary, grouped by `summary.failures`. Counts, exit status, the list of ``-r``,
JUnit's file and the report keep every test.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from . import summary
from .plugin import KEY, run_of

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_HIDDEN = pytest.StashKey[list[pytest.TestReport]]()


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
def pytest_findings_are_shown_apart(
    terminalreporter: TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Keep what was found from pytest's own section of failures."""
    failed = terminalreporter.stats.get("failed", [])
    found = [report for report in failed if any(name == KEY for name, _ in report.user_properties)]
    if found:
        config.stash[_HIDDEN] = failed
        terminalreporter.stats["failed"] = [report for report in failed if report not in found]
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Show it once, and give pytest its reports back for its list and counts."""
    if _HIDDEN not in config.stash:
        return
    shown = terminalreporter.stats["failed"]
    terminalreporter.stats["failed"] = config.stash[_HIDDEN]
    for report in config.stash[_HIDDEN]:
        if report not in shown:
            _shorten(report)
    if config.getoption("tbstyle") == "no":
        return
    terminalreporter.section("findings")
    for title, text in summary.failures(run_of(config).gathered.records):
        terminalreporter.write_sep("_", title, red=True, bold=True)
        terminalreporter.write_line(text)


def _shorten(report: pytest.TestReport) -> None:
    """Leave one line to the list of ``-r``: under ``-vv``, and where ``CI`` is set, pytest shows the whole message."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = crash.message.partition("\n")[0]
