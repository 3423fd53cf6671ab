"""Reads what a page shows: reports of the suite, records of the gate, stored runs, the kill matrix.

Promise: reads only, standard library only. Any file may be absent or unreadable: that becomes a `Missing` with its
reason, which the page names, and never an error. Times of different devices are kept apart.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ci import gate_record, report
from ci.gate_record import Record, RecordError
from ci.report import Node, Report, ReportError

# Bytes of an element, by the name of its dtype.
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
# What a timing may be compared with, and the field with its seconds.
PEERS = {"eager": "eager_seconds", "torch.compile": "compile_seconds"}
# The test that times, in the names of pytest-benchmark, and the name of its parameter.
TIMED, PARAMETER = "test_time_of_a_call", "race"
# Between two cells of a row of Markdown.
_BAR = re.compile(r"(?<!\\)\|")

Read = TypeVar("Read")


@dataclass(frozen=True)
class Missing:
    """Something that a page could show and does not: what, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Timing:
    """One case of a stored run.

    Attributes:
        candidate: Its name.
        device: The GPU's model, or the processor for a CPU.
        shape, dtype, layout: Of the case.
        seconds: Of a call.
        gb_per_s: Read and written in those seconds, in 10^9 bytes a second.
        of_copy: Time of a copy of the same bytes / time: 1 is the speed of a copy.
        peers: The same fraction of each peer that was timed beside it.
    """

    candidate: str
    device: str
    shape: str
    dtype: str
    layout: str
    seconds: float
    gb_per_s: float
    of_copy: float
    peers: tuple[tuple[str, float], ...]

    @property
    def case(self) -> str:
        """The case in words."""
        return " ".join([self.shape, self.dtype, *([] if self.layout == "contiguous" else [self.layout])])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: the columns are dimension 1."""
        return int(self.shape.split("x")[1]) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Run:
    """A stored run: its number and name, when it ended (ISO 8601), the commit, and what was timed."""

    name: str
    when: str
    commit: str
    timings: tuple[Timing, ...]


@dataclass(frozen=True)
class Kills:
    """The kill matrix: what stands around its tables, and the tables: the heading above, and the rows, head first."""

    notes: tuple[str, ...]
    tables: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]


def read_file(what: str, path: Path, read: Callable[[str], Read]) -> Read | Missing:
    """What a file says, or why it says nothing.

    Args:
        what: For the reader of the page.
        path: The file.
        read: Makes of its text what is wanted, or raises one of the errors below.
    """
    try:
        return read(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Missing(what, f"there is no file {path}: the step that writes it did not get that far")
    except OSError as error:
        return Missing(what, f"{path}: {error.strerror}")
    except (ValueError, LookupError, ReportError, RecordError) as error:
        return Missing(what, f"{path} cannot be read: {error}")


def read_verify(path: Path) -> Report | Missing:
    """A report of `ci/verify`."""
    return read_file("correctness", path, report.read)


def read_gate(path: Path) -> Record | Missing:
    """A record of `ci/gate`."""
    return read_file("the gate", path, gate_record.read)


def read_runs(folder: Path) -> tuple[list[Run], list[Missing]]:
    """All stored runs below a folder, oldest first, and those that cannot be read."""
    found = [read_file("a stored run", path, _named(path.stem)) for path in sorted(folder.rglob("*.json"))]
    runs = [each for each in found if isinstance(each, Run)]
    missing = [each for each in found if isinstance(each, Missing)]
    if not runs:
        how = "python -m pytest -m benchmark --benchmark-save=NAME, or ci/test --only=benchmark, stores one"
        missing.append(Missing("speed and its history", f"no stored run in {folder}; {how}"))
    return sorted(runs, key=lambda run: run.when), missing


def _named(name: str) -> Callable[[str], Run]:
    return lambda text: read_run(text, name)


def read_run(text: str, name: str) -> Run:
    """A stored run; what was not timed by our suite is left out.

    Raises:
        ReportError: It is no stored run of pytest-benchmark.
    """
    root = Node(json.loads(text), "run")
    machine = root.child("machine_info")
    ours = machine.child("kernelproof") if "kernelproof" in machine.value else Node({}, "kernelproof")
    commit = root.child("commit_info").optional_text("id") or ""
    timings = [_timing(node, ours) for node in root.children("benchmarks") if TIMED in node.text("name")]
    return Run(name, root.text("datetime"), commit, tuple(timings))


def _timing(node: Node, machine: Node) -> Timing:
    facts = node.child("extra_info")
    target, shape, dtype, layout = (facts.text(name) for name in ("target", "shape", "dtype", "layout"))
    if dtype not in ITEM_BYTES or not all(part.isdigit() for part in shape.split("x")) or "x" not in shape:
        raise ReportError(f"{facts.place} has no shape and dtype that are known here: {shape} {dtype}")
    copy = _number(facts, "copy_seconds")
    known = {name: _number(facts, key) for name, key in PEERS.items() if key in facts.value}
    device = machine.optional_text("gpu") if target == "cuda" else machine.optional_text("processor")
    label = "-".join([shape, dtype, *([] if layout == "contiguous" else [layout])])
    seat = node.child("params").text(PARAMETER).removesuffix(f"-{label}")
    return Timing(
        candidate=seat.removesuffix(f"-{target}"),
        device=device or f"an unnamed {'GPU' if target == 'cuda' else 'processor'}",
        shape=shape,
        dtype=dtype,
        layout=layout,
        seconds=_number(facts, "seconds"),
        gb_per_s=_number(facts, "gb_per_s"),
        of_copy=_number(facts, "of_copy"),
        peers=tuple((name, copy / seconds) for name, seconds in known.items()),
    )


def _number(node: Node, name: str) -> float:
    value = node.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ReportError(f"{node.place}.{name} is no positive number")
    return float(value)


def devices(runs: Iterable[Run]) -> list[str]:
    """The devices that were timed, in the order of their first run."""
    return list(dict.fromkeys(timing.device for run in runs for timing in run.timings))


def history(runs: Sequence[Run], device: str) -> Mapping[tuple[str, str], list[tuple[Run, Timing]]]:
    """By candidate and case: every run of it on this device, oldest first."""
    found: dict[tuple[str, str], list[tuple[Run, Timing]]] = {}
    for run in runs:
        for timing in run.timings:
            if timing.device == device:
                found.setdefault((timing.candidate, timing.case), []).append((run, timing))
    return found


def read_kills(path: Path) -> Kills | Missing:
    """The kill matrix, as `pytest -m mutants --kill-matrix=FILE` writes it."""
    return read_file("the kill matrix", path, kills_of_markdown)


def kills_of_markdown(text: str) -> Kills:
    """The tables of a Markdown file, and the lines around them, without its markup.

    Raises:
        ValueError: There is no table in it.
    """
    notes: list[str] = []
    tables: list[tuple[str, list[tuple[str, ...]]]] = []
    heading, inside = "", False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("|"):
            cells = tuple(map(unmarked, _BAR.split(line.strip("|"))))
            if not inside:
                tables.append((heading, []))
            if not all(re.fullmatch(":?-+:?", cell) for cell in cells):
                tables[-1][1].append(cells)
        elif line.startswith("#"):
            heading = unmarked(line.lstrip("#"))
        elif line:
            notes.append(unmarked(line))
        inside = line.startswith("|")
    if not tables:
        raise ValueError("it holds no Markdown table")
    return Kills(tuple(notes), tuple((title, tuple(rows)) for title, rows in tables if rows))


def unmarked(text: str) -> str:
    """Text without the markup that a table of Markdown may hold: links, bold, code, escaped bars."""
    linked = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.strip())
    plain = re.sub(r"(\*\*|`)(.+?)\1", r"\2", linked)
    return re.sub(r"(?<![\w*])\*(\S(?:[^*]*\S)?)\*(?![\w*])", r"\1", plain).replace("\\|", "|")
