"""Prints the kill matrix at the end of a run that made one; the lines come from the tests, under xdist too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import kill_matrix

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """One line a mutant: who killed it, with what words."""
    reports = [report for found in ("passed", "failed") for report in terminalreporter.getreports(found)]
    lines = [str(text) for report in reports for name, text in report.user_properties if name == kill_matrix.KEY]
    if lines:
        terminalreporter.section("kill matrix")
        terminalreporter.write_line(kill_matrix.table(lines))
