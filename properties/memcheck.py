"""Run a candidate under compute-sanitizer's memcheck: every access of a kernel beyond an allocation is seen.

A GPU maps memory in pieces of 2 MiB, so a kernel that reads or writes a little too far reaches bytes that are mapped,
and nothing dies. The sanitizer knows every allocation to the byte; torch's pool is turned off for it (an allocation is
then exactly as large as the tensor). The candidate runs in a process of its own (`sanitized`), which is slow, so a few
cases of awkward sizes go through one process together. The tool's report is all that is read of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from .cases import Case, features
from .findings import Finding, Kind
from .layouts import Layout
from .process import nursery_environment
from .sanitized import CASE_MARK, RAISED_MARK
from .subject import Subject
from .trial import NotRunError, Trial

#: Where the CUDA toolkit puts it when PATH does not name it.
_USUAL_PLACE = Path("/usr/local/cuda/bin/compute-sanitizer")
#: Seconds for all cases together: a start under the tool takes 5 to 10, a call milliseconds.
_SECONDS = 120.0
#: Seconds to wait for its end: with a kernel under way, or on a card that hangs, the driver holds it back.
_DEATH_SECONDS = 20.0
#: Seconds between two looks at it, and bytes of output that are enough for a thousand errors.
_LOOK_AGAIN = 0.5
_MOST_OUTPUT = 16 << 20
_ERROR = re.compile(r"^=+ (Invalid \S+ (?:read|write|atomic)[^\n]*|Misaligned[^\n]*|Out-of-range[^\n]*)", re.MULTILINE)
_TOOL_LINE = re.compile(r"^=+ ?")
_SHOWN = 8


def fenced(trial: Trial, case: Case) -> None:
    """The case and its relatives, under memcheck; the first of them that is not clean is named."""
    program = tool()
    subject = trial.subject
    lines = [str(each) for each in relatives(case) if features(each) <= subject.supported]
    report = _run(program, subject, lines)
    raised = list[str]()
    for part in re.split(rf"^{re.escape(CASE_MARK)}", report, flags=re.MULTILINE)[1:]:
        where, _, said = part.partition("\n")
        found = _ERROR.search(said)
        if found:
            text = f"{found[1][0].lower()}{found[1][1:]} (compute-sanitizer memcheck, at {where})"
            trial.report(Finding(Kind.OUT_OF_BOUNDS, text, _excerpt(said, found[1])))
        raised += [line.removeprefix(RAISED_MARK) for line in said.splitlines() if line.startswith(RAISED_MARK)]
    if len(raised) >= len(lines):
        raise NotRunError(f"every call raises where compute-sanitizer watches: {raised[0]}")
    if f"{CASE_MARK}{lines[-1]}" not in report.splitlines():
        raise NotRunError(f"compute-sanitizer did not get to the end: {_last_words(report)}")


def relatives(case: Case) -> list[Case]:
    """The case, and others of its dtype whose ends lie elsewhere: few columns, long rows, odd starts, columns apart."""
    rows, columns = case.shape[:2]
    plain = replace(case, layout=Layout(), plants=())
    found = [case]
    found += [replace(plain, shape=shape) for shape in ((5, 31), (33, 7), (1, columns + 2), (rows, 4097), (2, 65537))]
    found += [replace(plain, dtype=dtype) for dtype in ("float16", "bfloat16", "float64") if dtype != case.dtype]
    found += [replace(plain, layout=Layout(offset=1)), replace(plain, layout=Layout(order=(1, 0)))]
    found += [replace(plain, shape=(3, 33, 35)), replace(plain, shape=(1, 1))]
    return list(dict.fromkeys(found))


def tool() -> str:
    """Where compute-sanitizer is.

    Raises:
        NotRunError: there is none.
    """
    found = shutil.which("compute-sanitizer") or (str(_USUAL_PLACE) if _USUAL_PLACE.is_file() else "")
    if not found:
        raise NotRunError("needs compute-sanitizer, which comes with the CUDA toolkit")
    return found


def _run(tool: str, subject: Subject, lines: list[str]) -> str:
    """The combined output of tool and candidate.

    Raises:
        NotRunError: they did not end in time.
    """
    runner = subject.runner
    command = [tool, "--tool=memcheck", "--report-api-errors=no", "--print-limit=20"]
    command += [sys.executable, "-m", "properties.sanitized", json.dumps(runner.what()), *lines]
    environment = {
        **nursery_environment(perturb=False),
        **runner.variables,
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    }
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=runner.nursery.scratch,
            env=environment,
            start_new_session=True,
        )
        try:
            _wait(child, log.fileno())
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # with what the candidate has left running
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_DEATH_SECONDS)
        log.seek(0)
        return log.read()


def _wait(child: subprocess.Popen[bytes], log: int) -> None:
    """Wait for the tool's end.

    Raises:
        NotRunError: it takes too long, or a candidate prints without end.
    """
    deadline = time.monotonic() + _SECONDS
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK_AGAIN)
            return
        if time.monotonic() > deadline:
            raise NotRunError(f"compute-sanitizer took longer than {_SECONDS:g} s")
        if os.fstat(log).st_size > _MOST_OUTPUT:
            raise NotRunError(f"tool and candidate print more than {_MOST_OUTPUT >> 20} MiB")


def _excerpt(report: str, first: str) -> tuple[str, ...]:
    """The tool's lines from an error on, without its margin."""
    lines = [_TOOL_LINE.sub("", line).strip() for line in report[report.index(first) :].splitlines()]
    return tuple(f"| {line}" for line in lines if line)[:_SHOWN]


def _last_words(report: str) -> str:
    lines = [line for line in (_TOOL_LINE.sub("", each).strip() for each in report.splitlines()) if line]
    return lines[-1] if lines else "it said nothing"
