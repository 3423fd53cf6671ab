"""Words and records about a benchmark run: its machine, whether a stored run may be compared, and the table."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

import torch
from rich.console import Console
from rich.table import Table

from . import card, timing
from .records import Record
from .targets import Machine

#: Our part of pytest-benchmark's ``machine_info``.
INFO = "kernelproof"
#: Columns that the table needs; a narrower terminal wraps its lines rather than lose figures.
_LEAST_WIDTH = 140
#: What makes times incomparable, and what is only worth a remark.
_DECISIVE = {"gpu": "GPU"}
_REMARKABLE = {"processor": "processor", "driver": "GPU driver", "torch": "torch", "cuda": "CUDA"}


def machine_info(machine: Machine) -> Record:
    """What stored times are to be read beside."""
    return {
        "gpu": machine.gpu or None,
        "driver": machine.driver or None,
        "clocks": card.clocks() if machine.gpu else {},
        "processor": machine.processor,
        "torch": machine.torch,
        "cuda": torch.version.cuda,
    }


def refusal(now: Mapping[str, object], stored: Mapping[str, object]) -> str:
    """Why a stored run must not be compared with one of this machine; "" where it may be.

    Args:
        now: this machine's ``machine_info`` of pytest-benchmark.
        stored: that of the stored run.
    """
    mine, theirs = _ours(now), _ours(stored)
    if not theirs:
        return "the stored run does not say on which GPU it was measured; store one with --benchmark-save=NAME"
    for key, name in _DECISIVE.items():
        if mine.get(key) != theirs.get(key):
            return (
                f"the stored run was measured on another {name} ({theirs.get(key) or 'none'}) than this machine's "
                f"({mine.get(key) or 'none'}): their times say nothing about the code. Store a run of this machine "
                f"with --benchmark-save=NAME, or name one of its runs with --benchmark-compare=NUMBER"
            )
    return ""


def remarks(now: Mapping[str, object], stored: Mapping[str, object]) -> list[str]:
    """What else differs and may matter; clocks of the moment are not among it."""
    mine, theirs = _ours(now), _ours(stored)
    return [
        f"the stored run had another {name}: {theirs.get(key)}, now {mine.get(key)}"
        for key, name in _REMARKABLE.items()
        if mine.get(key) != theirs.get(key)
    ]


def _ours(info: Mapping[str, object]) -> Mapping[str, object]:
    part = info.get(INFO)
    return part if isinstance(part, dict) else {}


def table(facts: Iterable[Record], width: int) -> str:
    """The figures of all cases, one line each, and what was not measured."""
    rows = list(facts)
    out = io.StringIO()
    console = Console(file=out, width=max(width, _LEAST_WIDTH), highlight=False, soft_wrap=False)
    for who in dict.fromkeys((row["candidate"], row["target"]) for row in rows):
        mine = [row for row in rows if (row["candidate"], row["target"]) == who]
        if any("seconds" in row for row in mine):
            console.print(_table(f"{who[0]} on {who[1]}", [row for row in mine if "seconds" in row]))
        for row in mine:
            if row["reason"]:
                console.print(f"  {'wrong' if 'seconds' in row else 'not measured'}: {row['case']}: {row['reason']}")
            for peer, why in row.get("peers_not_timed", {}).items():
                console.print(f"  {peer} not timed: {row['case']}: {why}", markup=False)
            for name, method in row.get("methods", {}).items():
                if "(" in method:
                    console.print(f"  {name}: {row['case']}: {method}", markup=False)
    if any("seconds" in row for row in rows):
        console.print("time: median of a call; of copy: best time of a copy of the same bytes / time; one run's ratios")
    return out.getvalue()


def _table(title: str, rows: list[Record]) -> Table:
    found = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("shape", "dtype", "layout", "time", "GB/s", "of copy", "vs eager", "vs compile", "rounds", "goal"):
        found.add_column(
            name, justify="left" if name in ("shape", "dtype", "layout", "goal") else "right", no_wrap=True
        )
    for row in rows:
        goal = {True: "met", False: "MISSED", None: ""}[row["goal_met"]]
        found.add_row(
            row["shape"],
            row["dtype"],
            row["layout"],
            timing.seconds(row["seconds"]),
            f"{row['gb_per_s']:.1f}",
            f"{row['of_copy']:.3f}",
            *(f"{row[key]:.2f}" if key in row else "" for key in ("vs_eager", "vs_compile")),
            f"{row['rounds']}x{row['calls_a_round']}",
            f"{row['goal'].replace('_', ' ')} {goal}".strip(),
        )
    return found
