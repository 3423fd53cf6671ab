"""pytest's side of the kill matrix: its options, and what a run that made one prints and writes at its end.

Facts travel in ``user_properties`` and reasons in skipped reports, so both are the same under xdist.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import kill_report
from .targets import machine

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

#: Under this name a specimen that was not judged travels: its name, a tab, the reason.
NOT_JUDGED = "kernelproof-not-judged"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kill matrix."""
    group = parser.getgroup("kill matrix", "kernelproof: the kill matrix (-m mutants)")
    group.addoption("--kill-matrix", metavar="FILE", help="also write the matrix there, as Markdown")
    group.addoption(
        "--sole-killers",
        action="store_true",
        help="ask the other properties, too, until a second one rejects a mutant: which one is the only one to do so",
    )


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """One line a mutant: what the usual check says, who killed it, with what words."""
    reports = [each for found in ("passed", "failed", "skipped") for each in terminalreporter.getreports(found)]
    told = [entry for report in reports for entry in getattr(report, "user_properties", ())]
    facts = [kill_report.read(str(text)) for name, text in told if name in (kill_report.KEY, kill_report.HONEST_KEY)]
    if not facts:
        return
    terminalreporter.section("kill matrix")
    terminalreporter.write_line(kill_report.table(facts))
    if path := config.getoption("kill_matrix"):
        absent = [str(text).partition("\t")[::2] for name, text in told if name == NOT_JUDGED]
        file = config.invocation_params.dir / Path(path).expanduser()
        file.write_text(kill_report.markdown(facts, absent, machine()), encoding="utf-8")
        terminalreporter.write_line(f"written to {file}")
