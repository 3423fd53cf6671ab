"""The gate's table for a terminal, made from its record alone."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from ci.gate_record import NOT_MEASURED, STORED, Case, Estimate, Record

from . import timing

#: Columns that the table needs; a narrower terminal wraps its lines rather than lose figures.
_LEAST_WIDTH = 140


def table(record: Record, width: int) -> str:
    """All cases, one line each, then what was not measured, then what is to be known beside."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, _LEAST_WIDTH), highlight=False, soft_wrap=False, markup=False)
    measured = [case for case in record.cases if case.verdict != NOT_MEASURED]
    if measured:
        console.print(_table(f"{record.candidate.label} against {record.base.label} on {record.target}", measured))
    alike: dict[tuple[str, str, str], list[str]] = {}
    for case in record.cases:
        if case.text:
            alike.setdefault((case.verdict, case.reason, case.text), []).append(case.name)
    for (verdict, reason, text), names in alike.items():
        what = f" ({reason})" if reason else ""
        who = names[0] if len(names) == 1 else f"{len(names)} cases, {names[0]} among them"
        console.print(f"  {verdict}{what}: {who}: {text}", soft_wrap=True)
    for line in beside(record):
        console.print(line, soft_wrap=True)
    return out.getvalue()


def beside(record: Record) -> list[str]:
    """What the figures are to be read beside."""
    lines = [f"note: {note}" for note in record.notes]
    if record.same_code:
        lines.append("A/A: candidate and base are the same code (equal digests)")
    clocks = record.machine.clocks
    if "sm_mhz_lowest" in clocks:
        lines.append(
            f"SM clock {clocks['sm_mhz_lowest']} to {clocks['sm_mhz_highest']} MHz of {clocks.get('sm_max_mhz', '?')}"
            f"; held down by: {', '.join(record.machine.throttled) or 'nothing'}"
        )
    if all(case.verdict == NOT_MEASURED for case in record.cases):
        return lines
    how = "each to the copy of its own run" if record.comparison == STORED else "in turns in one run"
    lines.append(
        f"ratio: time of the candidate / time of the base, {how}; intervals at {record.confidence:.1%}; effects below "
        f"{record.minimum:.1%} do not count"
    )
    return lines


def _table(title: str, cases: list[Case]) -> Table:
    found = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("case", "verdict", "ratio", "interval", "time", "of copy", "base's", "copy/copy", "rounds"):
        found.add_column(name, justify="left" if name in ("case", "verdict") else "right", no_wrap=True)
    for case in cases:
        assert case.ratio is not None, "a measured case has a ratio"
        found.add_row(
            case.name,
            case.verdict,
            f"{case.ratio.value:.3f}",
            f"{case.ratio.low:.3f}..{case.ratio.high:.3f}",
            timing.seconds(case.candidate_seconds) if case.candidate_seconds else "",
            _value(case.candidate_of_copy),
            _value(case.base_of_copy),
            _value(case.control),
            str(case.rounds),
        )
    return found


def _value(found: Estimate | None) -> str:
    return f"{found.value:.3f}" if found else ""
