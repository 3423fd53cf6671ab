"""The options of ``pytest -m gate``; `ci/gate` gives them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci.gate_cases import COMMITTED

from .options import UsageError
from .verdicts import MINIMUM

#: Flag, what its value is called, and its help.
OPTIONS = (
    ("--against", "FILE", "what the gate compares with: any file that defines ModelNew"),
    ("--stored", "ID", "what the gate compares with: a run of --benchmark-save, by number or path, through its copy"),
    ("--minimum-effect", "X", f"the least effect that counts, such as 3%% or 0.03 (default: {MINIMUM:g})"),
    ("--gate-cases", "FILE", f"measure the cases of this list (default: the benchmarks, which must be in {COMMITTED})"),
    ("--gate-json", "FILE", "write the record of the gate there"),
    ("--candidate-label", "TEXT", "what table and record call the candidate (default: its file's name)"),
    ("--base-label", "TEXT", "what they call its base"),
)


@dataclass(frozen=True)
class GateOptions:
    """The options, read and checked."""

    against: Path | None = None
    stored: str = ""
    minimum: float = MINIMUM
    cases: Path = COMMITTED
    record: Path | None = None
    candidate_label: str = ""
    base_label: str = ""


def read(given: Callable[[str], object], start: Path) -> GateOptions:
    """Read the options.

    Args:
        given: the value of an option by its attribute's name; None where it was not given.
        start: the folder that relative paths are meant from.

    Raises:
        UsageError: one of them cannot be meant.
    """
    texts = {flag.removeprefix("--").replace("-", "_"): "" for flag, _, _ in OPTIONS}
    texts = {name: str(given(name) or "") for name in texts}
    if texts["against"] and texts["stored"]:
        raise UsageError("--against and --stored: a gate has one base")
    against = (start / Path(texts["against"]).expanduser()).resolve() if texts["against"] else None
    if against is not None and not against.is_file():
        raise UsageError(f"--against={texts['against']}: no such file")
    return GateOptions(
        against,
        texts["stored"],
        fraction(texts["minimum_effect"]) if texts["minimum_effect"] else MINIMUM,
        (start / Path(texts["gate_cases"]).expanduser()).resolve() if texts["gate_cases"] else COMMITTED,
        start / Path(texts["gate_json"]).expanduser() if texts["gate_json"] else None,
        texts["candidate_label"],
        texts["base_label"],
    )


def fraction(text: str) -> float:
    """A share between 0 and 1, written as 0.03 or as 3%.

    Raises:
        UsageError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(%?)", text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value < 1:
        raise UsageError(f"--minimum-effect={text}: expected a share between 0 and 1, such as 0.03 or 3%")
    return value
