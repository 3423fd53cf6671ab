"""Reads the list of cases that a gate must measure: what is not on it can go missing without anybody noticing.

Promise: standard library only. The list is TOML with a table a target; a key is a case's name, its value the case line
from which the case can be made again:

    [cuda]
    "65536x4095-bfloat16" = "shape=65536x4095,dtype=bfloat16,values=signed,seed=1"
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ci.gate_record import NOT_MEASURED, REASONS, RENAMED, Case

COMMITTED: Final = Path(__file__).resolve().parent / "baselines" / "cases.toml"


class CasesError(Exception):
    """The list cannot be used; the message is one line that names the file and what is wrong."""


def read(path: Path, target: str) -> dict[str, str]:
    """The expected cases of a target: their lines by name, in the order of the file.

    Raises:
        CasesError: There is no such file, it is no such list, or it has no case for the target.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CasesError(f"the list of cases {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CasesError(f"the list of cases {path} is no TOML: {error}") from error
    found = document.get(target)
    if not isinstance(found, dict) or not found:
        raise CasesError(f"the list of cases {path} has no table [{target}] with a case in it")
    for name, line in found.items():
        if not isinstance(line, str) or "shape" not in fields(line):
            raise CasesError(f'{path}: the case {name!r} has no line such as "shape=64x4095,dtype=float32"')
    return dict(found)


def fields(line: str) -> dict[str, str]:
    """The parts of a case line by name."""
    return {name: value for name, equals, value in (part.partition("=") for part in line.split(",")) if equals}


def unmeasured(name: str, line: str, reason: str, text: str = "") -> Case:
    """A case without figures that count.

    Args:
        name: Of the case.
        line: From which it can be made; "" where it is not known.
        reason: One of `gate_record.REASONS`.
        text: In words; by default what the reason means.
    """
    parts = fields(line)
    shape, dtype = parts.get("shape", ""), parts.get("dtype", "float32" if line else "")
    layout = parts.get("layout", "contiguous" if line else "")
    return Case(name, NOT_MEASURED, shape, dtype, layout, reason=reason, text=text or REASONS[reason])


def renamed(expected: Mapping[str, str], suite: Mapping[str, str]) -> dict[str, Case]:
    """The expected cases that the suite measures under a name that is not on the list."""
    others = {line: name for name, line in suite.items() if name not in expected}
    return {
        name: unmeasured(name, line, RENAMED, f"its name is {others[line]} now: change the list of expected cases, too")
        for name, line in expected.items()
        if name not in suite and line in others
    }
