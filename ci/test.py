"""Every test of the quick profile, step by step: lint, format, types, the tests of the project itself, the suite.

Promise: a step that cannot run is named with its reason and is not counted as passed; every other step runs
whatever became of the one before. The last line is "N passed, N failed, N skipped": pytest's tests, and one for
each other step.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from ci import environment, verify
from ci.exits import INTERNAL, OK, REJECTED, UNAVAILABLE, USAGE, Stop
from ci.options import Options, Parser, absolute
from kernels.folder import cache_folder

# What the tests of the project leave to other commands: the suite has its own step, the rest belongs to the nightly.
OWN_TESTS = "not correctness and not benchmark and not mutants and not slow"

DESCRIPTION = """\
Runs every test of the quick profile, the linter and the type checker, in the environment of ci/verify with the
tools of the dev group added. Three more steps run only when they are named: --only=mutants is the kill matrix,
--only=benchmark stores a run, --only=sanitizers watches our kernels with compute-sanitizer, on a GPU."""

EPILOG = """\
exit codes: 0 all green; 1 a step failed; 64 called wrongly; 69 nothing ran, or no environment; 70 internal error;
130 interrupted; 143 ended by SIGTERM"""


@dataclass(frozen=True)
class Result:
    """How a step ended.

    Attributes:
        code: 0, 1, 69 (not run) or 70.
        note: In a few words, for the summary.
        passed: Tests passed; likewise `failed` and `skipped`.
        seconds: How long it took.
    """

    code: int
    note: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Manner:
    """How the steps that run pytest do it.

    Attributes:
        workers: The value for xdist's -n; None for one process.
        reports: The folder for the reports of the steps; None for none.
    """

    workers: str | None = None
    reports: Path | None = None

    def report(self, name: str) -> Path | None:
        """Where the report of this name goes."""
        return None if self.reports is None else self.reports / name


Step = Callable[[], Result]


def test_parser() -> Parser:
    """The parser of `ci/test`."""
    parser = Parser(
        prog="ci/test",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only", action="append", metavar="STEP", help=f"only this step, one of {', '.join(STEPS)}; may be repeated"
    )
    parser.add_argument(
        "-n", "--numprocesses", dest="workers", metavar="N", help="run the tests in N processes at once, or 'auto'"
    )
    parser.add_argument(
        "--reports", metavar="DIR", help="also write the steps' reports into this folder: JUnit, and the suite's JSON"
    )
    parser.add_argument("--offline", action="store_true", help="download nothing")
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options of `ci/test`.

    Raises:
        Stop: With code 64 and a line that names what is wrong.
    """
    parser = test_parser()
    given = parser.parse_args(arguments)
    for name in given.only or []:
        if name not in STEPS:
            parser.error(f"--only={name}: no such step, expected one of {', '.join(STEPS)}")
    return given


def reports_folder(text: str | None, folder: Path) -> Path | None:
    """The folder for reports, made where it is not there.

    Raises:
        Stop: It cannot be.
    """
    if text is None:
        return None
    path = absolute(text, folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Stop(USAGE, f"--reports={text}: cannot make the folder {path}: {error.strerror}") from error
    return path


def main(arguments: Sequence[str]) -> int:
    """Run `ci/test` and return its exit code."""
    given = parse(arguments)
    manner = Manner(given.workers, reports_folder(given.reports, Path.cwd()))
    wanted = given.only or [name for name in STEPS if name not in ON_REQUEST]
    verify.begin_anew(*(manner.report(name) for step in wanted for name in REPORTS.get(step, ())))
    cache = cache_folder(os.environ, Path.home(), sys.platform)
    made = environment.ensure(verify.CHECKOUT, cache, with_tools=True, offline=given.offline, say=verify.say)
    steps: dict[str, Step] = {name: _bind(step, made, manner) for name, step in STEPS.items() if name in wanted}
    results = run_steps(steps)
    text = [f"kernelproof: ci/test with torch {made.torch}", *(table(results)), closing_line(results)]
    sys.stdout.write("\n".join(["", *text, ""]))
    sys.stdout.flush()
    return exit_code(results)


def _bind(
    step: Callable[[environment.Environment, Manner], Result], made: environment.Environment, manner: Manner
) -> Step:
    return lambda: step(made, manner)


def run_steps(steps: dict[str, Step]) -> dict[str, Result]:
    """Run each step, announce it, time it."""
    results: dict[str, Result] = {}
    for name, step in steps.items():
        sys.stdout.write(f"\n== {name}\n")
        sys.stdout.flush()
        start = time.monotonic()
        results[name] = replace(step(), seconds=time.monotonic() - start)
    return results


def program_step(made: environment.Environment, name: str, arguments: Sequence[str]) -> Result:
    """A step that is one program of the tools: green where it ends with status 0, not run where it is not there."""
    variables = made.variables(os.environ)
    program = shutil.which(name, path=variables["PATH"])
    if program is None:
        return Result(UNAVAILABLE, f"not run: {name} is not installed and could not be")
    status = verify.run([program, *arguments], variables)
    return Result(OK, "passed", passed=1) if status == 0 else Result(REJECTED, f"{name} says no", failed=1)


def lint(made: environment.Environment, _manner: Manner) -> Result:
    """The linter."""
    return program_step(made, "ruff", ["check", str(verify.CHECKOUT)])


def formatting(made: environment.Environment, _manner: Manner) -> Result:
    """The formatter, which only says what it would change."""
    return program_step(made, "ruff", ["format", "--check", str(verify.CHECKOUT)])


def types(made: environment.Environment, _manner: Manner) -> Result:
    """The type checker, with this environment's packages in view."""
    return program_step(made, "mypy", [f"--python-executable={made.python}"])


def own_tests(made: environment.Environment, manner: Manner) -> Result:
    """The tests of the project itself: of the steps of the suite, the kernels, the reference, these commands.

    Those of one file stay together: what a file compiles for its tests is compiled once.
    """
    return counted_tests(made, manner, OWN_TESTS, "tests.xml", *([] if manner.workers is None else ["--dist=loadfile"]))


def mutants(made: environment.Environment, manner: Manner) -> Result:
    """The kill matrix: every known-bad candidate is rejected for its own reason, every honest one is accepted."""
    matrix = manner.report("kills.md")
    return counted_tests(
        made, manner, "mutants", "mutants.xml", *([] if matrix is None else [f"--kill-matrix={matrix}"])
    )


def benchmark(made: environment.Environment, manner: Manner) -> Result:
    """The race of every case, stored as a run in the checkout's `.benchmarks`; one at a time, whatever -n says."""
    return counted_tests(made, replace(manner, workers=None), "benchmark", "benchmark.xml", "--benchmark-save=ci")


def sanitizers(made: environment.Environment, manner: Manner) -> Result:
    """Our kernels under racecheck, synccheck and initcheck; one at a time, since each wants the card for itself."""
    return counted_tests(made, replace(manner, workers=None), "sanitizer", "sanitizers.xml")


def counted_tests(made: environment.Environment, manner: Manner, markers: str, name: str, *arguments: str) -> Result:
    """The tests with these markers; their JUnit report, of this name, is what counts them."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-") as folder:
        counted = manner.report(name) or Path(folder) / name
        counted.unlink(missing_ok=True)
        several = [] if manner.workers is None else [f"--numprocesses={manner.workers}"]
        status = verify.run_pytest(
            made, ["-m", markers, f"--junitxml={counted}", *arguments, *several], workers=manner.workers is not None
        )
        return own_tests_result(status, counted.read_text(encoding="utf-8") if counted.is_file() else None)


def own_tests_result(status: int, counted: str | None) -> Result:
    """What pytest's status and its JUnit report mean.

    pytest's statuses: 0 green, 1 tests failed, 5 no tests; 2 covers files that cannot be imported; 3 is internal.
    """
    if counted is None:
        return Result(INTERNAL, f"pytest ended with status {status} and counted nothing", failed=1)
    passed, failed, skipped = junit_counts(counted)
    if status == 0 and not failed:
        return Result(OK if passed else UNAVAILABLE, "passed" if passed else "not run: no test", passed, 0, skipped)
    if status in (1, 2) and failed:
        return Result(REJECTED, f"{failed} failed", passed, failed, skipped)
    if status == 5:
        return Result(UNAVAILABLE, "not run: no test", 0, 0, skipped)
    return Result(INTERNAL, f"pytest ended with status {status}", passed, max(failed, 1), skipped)


def junit_counts(text: str) -> tuple[int, int, int]:
    """Tests passed, failed (errors included) and skipped, of a JUnit report that pytest wrote."""
    passed = failed = skipped = 0
    for suite in ElementTree.fromstring(text).iter("testsuite"):  # noqa: S314 - written by our own pytest a moment ago
        total, bad, left = (int(suite.get(name, "0")) for name in ("tests", "failures", "skipped"))
        bad += int(suite.get("errors", "0"))
        passed, failed, skipped = passed + total - bad - left, failed + bad, skipped + left
    return passed, failed, skipped


def correctness(made: environment.Environment, manner: Manner) -> Result:
    """The suite on the shipped kernel, as `ci/verify --profile=kp-quick` runs it."""
    options = Options(
        passed=("--profile=kp-quick",),
        workers=manner.workers,
        report=manner.report("correctness.json"),
        junit=manner.report("correctness.xml"),
    )
    outcome = verify.judge(made, options)
    sys.stdout.write("\n".join([*outcome.lines, ""]))
    tests = outcome.tests
    bad = tests.failed + tests.errors
    if outcome.code not in (OK, REJECTED, UNAVAILABLE):
        return Result(INTERNAL, outcome.lines[-1], tests.passed, max(bad, 1), tests.skipped)
    note = {OK: "accepted", REJECTED: "rejected", UNAVAILABLE: "not run: could be judged on no target"}[outcome.code]
    return Result(outcome.code, note, tests.passed, max(bad, outcome.code == REJECTED), tests.skipped)


STEPS: dict[str, Callable[[environment.Environment, Manner], Result]] = {
    "lint": lint,
    "format": formatting,
    "types": types,
    "tests": own_tests,
    "correctness": correctness,
    "mutants": mutants,
    "benchmark": benchmark,
    "sanitizers": sanitizers,
}
# What each leaves in the folder of --reports.
REPORTS = {
    "tests": ("tests.xml",),
    "correctness": ("correctness.json", "correctness.xml"),
    "mutants": ("mutants.xml", "kills.md"),
    "benchmark": ("benchmark.xml",),
    "sanitizers": ("sanitizers.xml",),
}
# Steps that only --only runs.
ON_REQUEST = ("mutants", "benchmark", "sanitizers")


def exit_code(results: dict[str, Result]) -> int:
    """The worst of the steps: internal error, failed, else green where at least one step ran."""
    codes = [result.code for result in results.values()]
    if INTERNAL in codes:
        return INTERNAL
    if REJECTED in codes:
        return REJECTED
    return OK if OK in codes else UNAVAILABLE


def table(results: dict[str, Result]) -> list[str]:
    """One line a step: its name, how it ended, its seconds."""
    return [f"  {name:<12} {result.note:<44} {result.seconds:7.1f} s" for name, result in results.items()]


def closing_line(results: dict[str, Result]) -> str:
    """The counts over all steps, alone on a line."""
    passed = sum(result.passed for result in results.values())
    failed = sum(result.failed for result in results.values())
    skipped = sum(result.skipped for result in results.values())
    return f"{passed} passed, {failed} failed, {skipped} skipped"
