"""What the tests of the gate share: candidates and bases of one line, tiny cases, whole runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci import gate_record
from ci.gate_record import Record

from ..gate import Gate

#: One thread: beside other people's jobs two that wait for each other take any time.
HEAD = "import torch\ntorch.set_num_threads(1)\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
RIGHT = "return x / x.abs().mean(1, keepdim=True)"
#: Six times the work: beyond all that other people's jobs do to this machine's times.
SLOW = f"for _ in range(5):\n            x / x.abs().mean(1, keepdim=True)\n        {RIGHT}"
CASES = '[cpu]\n"256x8192-float32" = "shape=256x8192"\n[cuda]\n"256x8192-float32" = "shape=256x8192"\n'
#: What is asked of times that are taken beside other people's jobs.
COARSE = 0.9
MakeGate = Callable[..., Gate]


def written(folder: Path, name: str, body: str) -> Path:
    """A candidate whose ``forward(self, x)`` has this body."""
    path = folder / f"{name}.py"
    path.write_text(f"{HEAD}        {body}\n", encoding="utf-8")
    return path


def measured(made: Gate) -> Record:
    """What a whole run of the gate finds; it is the same when it is written and read again."""
    for name in made.names:
        made.measure(name)
    found = made.record()
    assert gate_record.read(gate_record.to_json(found)) == found
    return found


def reasons(found: Record) -> dict[str, str]:
    """Why each case was not measured."""
    return {case.name: case.reason for case in found.cases}
