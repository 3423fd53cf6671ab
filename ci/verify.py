"""The main job: set up, judge the candidates on whatever this machine has, end with a summary and one exit code.

Promise: the exit code is derived from the report that the suite writes; a run without a report is an internal
error, whatever pytest's own code was. `ci/verify --help` explains every option.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ci import environment, facts, older, report, summary
from ci.exits import INTERNAL, NAMED_PYTHON, STARTED_BY, UNAVAILABLE, USAGE, Stop, Terminated
from ci.options import Options, parse_verify, verify_parser, without_options
from kernels.folder import cache_folder

CHECKOUT = Path(__file__).resolve().parent.parent
# pytest's plugins by module: others that the caller happens to have installed must not take part in a verdict.
PLUGINS = ("pytest_benchmark.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
# No list of what failed or was left out behind pytest's output: our own summary has it all with its reason. A test that
# broke before it could judge is listed.
SHORT_SUMMARY = "-rE"
# A process for each target. The shipped kernel is judged on both where there is a GPU, which takes half the time so.
SIDE_BY_SIDE = ("--numprocesses=2", "--dist=loadgroup")
# Cores for it: for two processes that judge, and two that call.
ENOUGH_CORES = 4
# Seconds for pytest to end by itself after an interrupt, workers included; and after SIGTERM, whose sender may not wait
# long. Its workers end with it in any case (`properties.nursery`).
INTERRUPT_PATIENCE = 20
TERMINATION_PATIENCE = 5


@dataclass(frozen=True)
class Outcome:
    """How a run of the suite ended: the exit code, the lines to show, and the tests' counts."""

    code: int
    lines: tuple[str, ...]
    tests: report.Tests = field(default_factory=report.Tests)


def main(arguments: Sequence[str]) -> int:
    """Run `ci/verify` and return its exit code."""
    options = parse_verify(arguments, os.environ, Path.cwd())
    begin_anew(options.report, options.junit)
    cache = options.cache or cache_folder(os.environ, Path.home(), sys.platform)
    made = environment.ensure(CHECKOUT, cache, with_tools=options.workers is not None, offline=options.offline, say=say)
    if options.workers is not None and any("xdist" in name for name in made.missing):
        raise Stop(UNAVAILABLE, "-n needs pytest-xdist, which could not be installed; leave -n out")
    outcome = judge(made, options)
    sys.stdout.write("\n".join(["", *outcome.lines, ""]))
    sys.stdout.flush()
    return outcome.code


def begin_anew(*reports: Path | None) -> None:
    """Take older reports away, so that nobody reads one for that of a run which wrote none.

    Raises:
        Stop: One stays.
    """
    try:
        older.remove(*reports)
    except OSError as error:
        raise Stop(USAGE, f"an older report cannot be replaced: {error}") from error


def say(line: str) -> None:
    """Tell on stderr what takes long."""
    sys.stderr.write(f"kernelproof: {line}\n")
    sys.stderr.flush()


def judge(made: environment.Environment, options: Options) -> Outcome:
    """Run the suite in this environment; the report is copied to where the user wants it."""
    say(f"pytest runs in {made.python}")
    beside = SIDE_BY_SIDE if side_by_side(made, options) else ()
    with tempfile.TemporaryDirectory(prefix="kernelproof-") as folder:
        written = Path(folder) / "report.json"
        status = run_pytest(
            made,
            [
                "-m",
                "correctness",
                str(CHECKOUT / "properties"),
                SHORT_SUMMARY,
                *options.pytest_arguments(),
                *beside,
                f"--report-json={written}",
            ],
            workers=options.workers is not None or bool(beside),
        )
        if not written.is_file():
            return Outcome(INTERNAL, (f"internal error: pytest ended with status {status} and left no report",))
        text = written.read_text(encoding="utf-8")
        kept = options.report is None or keep(text, options.report)
    found = conclude(text, summary.replay_command(CHECKOUT, named_python(made)))
    # What was rejected stays rejected; nothing is accepted without the report that was asked for.
    return found if kept else replace(found, code=found.code or INTERNAL)


def side_by_side(made: environment.Environment, options: Options) -> bool:
    """Whether two targets are judged at once: there are two, cores for both, and pytest-xdist, and no ``-n``."""
    one = options.candidates or any(re.match("--(case=|target=c)", each) for each in options.passed)
    if options.workers is not None or one or not facts.has_gpu() or len(os.sched_getaffinity(0)) < ENOUGH_CORES:
        return False
    return subprocess.run([made.python, "-c", "import xdist"], capture_output=True, check=False).returncode == 0


def conclude(text: str, command: str) -> Outcome:
    """The outcome that a report's text means; `command` calls `ci/verify` in a fresh shell."""
    try:
        found = report.read(text)
    except report.ReportError as error:
        return Outcome(INTERNAL, (f"internal error: {error}",))
    return Outcome(report.exit_code(found), tuple(summary.lines(found, command)), found.tests)


def run_pytest(made: environment.Environment, arguments: Sequence[str], workers: bool) -> int:
    """Run pytest in the checkout with our plugins only; returns its exit status."""
    plugins = [*PLUGINS, *(["xdist.plugin"] if workers else [])]
    command = [
        str(made.python),
        "-m",
        "pytest",
        f"--rootdir={CHECKOUT}",
        *(f"-p{name}" for name in plugins),
        *arguments,
    ]
    variables = without_options(made.variables(os.environ), verify_parser())
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    variables[STARTED_BY] = str(os.getpid())
    variables.pop(NAMED_PYTHON, None)
    if (python := named_python(made)) is not None:
        variables[NAMED_PYTHON] = python
    return run(command, variables)


def run(command: Sequence[str], variables: dict[str, str]) -> int:
    """Run a program in the checkout, its output passed through; returns its exit status.

    Raises:
        KeyboardInterrupt: There was an interrupt, or SIGTERM; the program has ended.
    """
    sys.stdout.flush()
    with subprocess.Popen(command, cwd=CHECKOUT, env=variables, stdin=subprocess.DEVNULL) as child:
        try:
            return child.wait()
        except KeyboardInterrupt as interrupt:
            # The terminal has sent an interrupt to the child, too; it gets time to end its workers.
            terminated = isinstance(interrupt, Terminated)
            if terminated:
                child.terminate()
            try:
                child.wait(TERMINATION_PATIENCE if terminated else INTERRUPT_PATIENCE)
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                child.kill()
            raise


def named_python(made: environment.Environment) -> str | None:
    """The Python that a replay has to name: the caller's, where its torch is the one in use and it is a venv's."""
    return sys.executable if made.inherits and sys.prefix != sys.base_prefix else os.environ.get("PYTHON")


def keep(text: str, wanted: Path) -> bool:
    """Write a report to where the user wants it; whether it is there."""
    try:
        wanted.write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"--report-json={wanted}: {error.strerror}; the report is not kept, and nothing is accepted without it")
        return False
    return True
