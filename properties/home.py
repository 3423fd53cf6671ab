"""A candidate in a plain program of its user's (`home_program`), which nothing tells that anybody looks on.

What runs it otherwise is a worker: it has this project's frames on its stack, its variables in the environment, and
memory that is filled for it. Who is right because of them, or where they are, is found by this program alone. It is
started, watched and ended here; nothing is judged.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import filelock
import torch

from kernels.folder import VARIABLE as CACHE_VARIABLE

from . import build_place, busy, candidate_loading, home_program, parent
from .build_place import NoPlaceError
from .home_program import INPUTS, RESULTS, STARTED, STEPS
from .inputs import Input
from .observation import Death
from .process import callers_environment, cause_of
from .protocol import printable
from .runner import Runner

#: What tells of this project, or of a service that runs tests: variables that begin so, or are named so, are left out.
_TELLING = ("KERNELPROOF", "GITHUB_", "GITLAB_", "JENKINS_", "BUILDKITE")
_OF_SERVICES = frozenset({"CI", "CONTINUOUS_INTEGRATION"})
#: Seconds that it has to end by itself once its results are there.
_END_SECONDS = 5.0
#: Seconds between two looks at whether it is done, and at whether compilers are at work.
_POLL, _LOOK_AGAIN = 0.05, 5.0
#: What a report calls this step.
_DURING = "a plain program"
#: Lines of what it printed that a report shows, and bytes that are looked at for them.
_LOG_LINES, _LARGEST_LOG = 12, 1 << 16


@dataclass(frozen=True)
class Call:
    """What a program calls the model on, and how.

    Attributes:
        given: the input, as it lies; it is not negated.
        times: how often in a row, while there is time; the last result counts.
        evaluated: whether the model was put into evaluation.
        asks: whether the input asks for a gradient.
    """

    given: Input
    times: int = 1
    evaluated: bool = False
    asks: bool = False

    @property
    def manner(self) -> dict[str, object]:
        """All but the input, as JSON has it."""
        return {"times": self.times, "evaluated": self.evaluated, "asks": self.asks}


@dataclass(frozen=True)
class Visit:
    """What came of a program.

    Attributes:
        results: of each call in turn, on the CPU; where one is no plain tensor, the name of its type.
        refused: by a call's number, what it raised, in words; its result is none.
        error: what was raised besides, in words; "" where the program came to its end.
        loaded: whether the candidate was loaded then.
        death: how it ended, if it did without a word.
        timed_out: whether it was ended for its silence.
    """

    results: tuple[torch.Tensor | str, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    error: str = ""
    loaded: bool = False
    death: Death | None = None
    timed_out: bool = False


def run(runner: Runner, calls: Sequence[Call], *, cache: bool) -> Visit:
    """Have a plain program call a runner's candidate on each input in turn.

    Args:
        runner: whose candidate, on whose device, within whose limits. It has been called: what is to be built is there.
        calls: the calls. Inputs of one shape and type behind each other come in one tensor, which is filled anew.
        cache: whether it is told where the shipped kernel's builds lie.

    Raises:
        NoPlaceError: there is no room for the program.
    """
    limits = runner.limits
    with contextlib.ExitStack() as held:
        try:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))).resolve()
            job = _lay_out(folder, runner, calls)
            read = held.enter_context(job.open("rb"))
            job.unlink()
            printed = held.enter_context((folder / "printed").open("wb"))
            variables = environment(runner, cache=cache)
            held.enter_context(runner.build_lock())
        except filelock.Timeout as busy_folder:
            raise NoPlaceError(f"another process has been building it for {limits.build:g} s") from busy_folder
        except OSError as error:
            raise NoPlaceError(build_place.words(error, Path(tempfile.gettempdir()), "TMPDIR")) from None
        process = subprocess.Popen(
            _command(folder, limits.start + limits.build + (len(calls) + 1) * limits.first),
            stdin=read,
            stdout=printed,
            stderr=printed,
            cwd=folder,
            env=variables,
            start_new_session=True,
        )
        try:
            waited = _watch(process, folder, runner)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _seen(folder, process.returncode, waited)


def _lay_out(folder: Path, runner: Runner, calls: Sequence[Call]) -> Path:
    """Write what the program is and what it reads; returns the file that it reads first."""
    for module, copy in ((home_program, "main"), (candidate_loading, "loading"), (parent, "ending")):
        shutil.copyfile(str(module.__file__), folder / f"{copy}.py")
    values = io.BytesIO()  # of a full disk torch says something else in every version
    torch.save([each.given.view_of(each.given.storage.cpu()) for each in calls], values)
    (folder / INPUTS).write_bytes(values.getvalue())
    job = {
        "path": str(runner.candidate),
        "tag": runner.tag,
        "model": runner.taken or runner.model,
        "init": list(runner.init),
        "device": runner.device,
        "calls": [each.manner for each in calls],
    }
    (folder / "job").write_text(json.dumps(job), encoding="utf-8")
    return folder / "job"


def environment(runner: Runner, *, cache: bool) -> dict[str, str]:
    """The user's variables, where the candidate's builds lie if it has any, and, if asked for, those of the kernel."""
    hidden = (name for name in os.environ if name in _OF_SERVICES or name.startswith(_TELLING))
    made = callers_environment()
    for name in hidden:
        made.pop(name, None)
    builds = runner.build_folder()
    if any(each.is_dir() for each in builds.iterdir()):
        made["TORCH_EXTENSIONS_DIR"] = str(builds)
    if cache:
        made[CACHE_VARIABLE] = str(runner.cache)
    return made


def _command(folder: Path, seconds: float) -> list[str]:
    """Its command line, with an end that it comes to even where who has started it was killed."""
    bound = shutil.which("timeout")
    plain = [sys.executable, str(folder / "main.py")]
    return plain if bound is None else [bound, "-s", "KILL", str(int(seconds) + 1), *plain]


def _watch(process: subprocess.Popen[bytes], folder: Path, runner: Runner) -> float | None:
    """Wait for its results, or its end; the seconds for which it was waited in vain.

    It has the time of a start, for each step that of a first call, and that of a build while compilers are at work.
    """
    began = look = time.monotonic()
    deadline, work, program, steps = began + runner.limits.start, 0, 0, -1
    while process.poll() is None and not (folder / RESULTS).exists():
        now = time.monotonic()
        if not program and (folder / STARTED).exists():
            program = int((folder / STARTED).read_text())
        if program and (done := _size(folder / STEPS)) > steps:
            steps, deadline = done, now + runner.limits.first
        if program and now >= look:
            helped, look = busy.helpers_work(program, session=process.pid), now + _LOOK_AGAIN
            if helped > work and now - began < runner.limits.build:
                work, deadline = helped, max(deadline, now + 2 * _LOOK_AGAIN)
        if now >= deadline:
            return now - began
        time.sleep(_POLL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _seen(folder: Path, status: int, waited: float | None) -> Visit:
    """What its files say, and its end where there are none."""
    with (folder / "printed").open("rb") as file:
        file.seek(max(_size(folder / "printed") - _LARGEST_LOG, 0))
        printed = map(printable, file.read(_LARGEST_LOG).decode(errors="replace").splitlines())
    log = tuple(line for line in printed if line.strip())[-_LOG_LINES:]
    if waited is not None:
        return Visit(death=Death(f"no answer within {waited:.0f} s", _DURING, log), timed_out=True)
    if not (folder / RESULTS).exists():
        return Visit(death=Death(cause_of(status), _DURING, log))
    try:
        told = torch.load(folder / RESULTS, weights_only=True)
        results = tuple(each if isinstance(each, torch.Tensor) else str(each) for each in told["results"])
        refused = {int(number): printable(str(words)) for number, words in told["refused"].items()}
        return Visit(results, refused, printable(str(told["error"])), told["stage"] != "load")
    except Exception:  # noqa: BLE001 - what lies there may be anything
        return Visit(death=Death("wrote garbage where its results belong", _DURING, log))
