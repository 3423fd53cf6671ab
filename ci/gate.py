"""The GPU regression gate: finds the base, has the suite time candidate and base in one run, ends with one exit code.

Promise: the exit code is derived from the record that the suite writes; a run without a record is an internal error,
whatever pytest's own code was. Where there is no base, the record says so of every case. `ci/gate --help` explains
every option and verdict.
"""

import contextlib
import datetime
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ci import environment, gate_cases, gate_record, verify
from ci.exits import INTERNAL, USAGE, Stop
from ci.gate_base import NoBaseError, Repository, Version
from ci.gate_options import Options, parse_gate
from ci.gate_record import DESELECTED, NO_BASELINE, NOT_MEASURED, SAME, SKIPPED, Contestant, Machine, Record
from kernels.folder import cache_folder

# pytest's exit status where an option cannot be meant, such as a list with a case that cannot be.
PYTEST_USAGE = 4
# The confidence that `properties.verdicts` holds a gate to; a record without a measurement names none.
_UNMEASURED = 0.0


def main(arguments: Sequence[str]) -> int:
    """Run `ci/gate` and return its exit code."""
    options = parse_gate(arguments, os.environ, Path.cwd())
    verify.begin_anew(options.report, options.junit)
    try:
        expected = gate_cases.read(options.cases, options.target)
    except gate_cases.CasesError as error:
        raise Stop(USAGE, str(error)) from error
    cache = options.cache or cache_folder(os.environ, Path.home(), sys.platform)
    with contextlib.ExitStack() as stack:
        try:
            candidate, base = stack.enter_context(contestants(options, cache))
        except NoBaseError as error:
            found = without_base(options, expected, str(error))
        else:
            made = environment.ensure(verify.CHECKOUT, cache, with_tools=False, offline=options.offline, say=verify.say)
            verify.say(f"{candidate.label} against {base.label}")
            measured = measure(made, options, candidate, base)
            if isinstance(measured, str):
                sys.stdout.write(f"\ninternal error: {measured}\n")
                return INTERNAL
            found = measured
            refuse_unmatched(options, found)
    kept = options.report is None or verify.keep(gate_record.to_json(found), options.report)
    sys.stdout.write("\n".join(["", *lines(found, options.keyword), ""]))
    sys.stdout.flush()
    return found.exit_code if kept else found.exit_code or INTERNAL


@contextlib.contextmanager
def contestants(options: Options, cache: Path) -> Iterator[tuple[Version, Version]]:
    """Candidate and base, with the base's files laid out until the block ends.

    Raises:
        NoBaseError: There is no base.
    """
    if options.against is not None or options.stored:
        try:
            candidate = Repository(options.candidate).present()
        except NoBaseError:
            candidate = Version(options.candidate.name, "", options.candidate)
        if options.against is not None:
            yield candidate, Version(options.against.name, "", options.against)
        else:
            yield candidate, Version(f"stored run {options.stored}", "", Path())
        return
    repository = Repository(options.candidate)
    label, commit = repository.base(options.base)
    with repository.laid_out(label, commit, cache) as base:
        yield repository.present(), base


def measure(made: environment.Environment, options: Options, candidate: Version, base: Version) -> Record | str:
    """Have the suite measure; returns its record with the names of what was compared, or what went wrong.

    Raises:
        Stop: The suite could not take its options.
    """
    with tempfile.TemporaryDirectory(prefix="kernelproof-") as folder:
        written = Path(folder) / "gate.json"
        against = f"--stored={options.stored}" if options.stored else f"--against={base.path}"
        words = [
            "-m",
            "gate",
            str(verify.CHECKOUT / "properties" / "test_gate.py"),
            f"--candidate={options.candidate}",
            against,
            f"--candidate-label={candidate.label}",
            f"--base-label={base.label}",
            f"--target={options.target}",
            f"--gate-cases={options.cases}",
            f"--gate-json={written}",
            f"--cache-dir={made.cache}",
            *options.passed,
        ]
        status = verify.run_pytest(made, words, workers=False)
        refused = Stop(USAGE, "the suite cannot take what it was given; its message stands above")
        if not written.is_file() and status == PYTEST_USAGE:
            raise refused
        if not written.is_file():
            return f"pytest ended with status {status} and left no record"
        try:
            found = gate_record.read(written.read_text(encoding="utf-8"))
        except gate_record.RecordError as error:
            return str(error)
        if status == PYTEST_USAGE and all(case.reason == SKIPPED for case in found.cases):
            raise refused  # an expression of -k that is none: nothing was even chosen
    return replace(
        found,
        candidate=replace(found.candidate, label=candidate.label, commit=candidate.commit),
        base=replace(found.base, label=base.label, commit=base.commit),
    )


def refuse_unmatched(options: Options, found: Record) -> None:
    """Stop where the expression of -k names no case: somebody means one, and must not take nothing for an answer.

    Raises:
        Stop: It is so; the line names the cases that there are.
    """
    if options.keyword and found.cases and all(case.reason == DESELECTED for case in found.cases):
        names = ", ".join(case.name for case in found.cases)
        raise Stop(USAGE, f"-k {options.keyword}: no case for {options.target} matches; there are {names}")


def without_base(options: Options, expected: dict[str, str], why: str) -> Record:
    """The record of a gate that has nothing to compare with."""
    return Record(
        date=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        target=options.target,
        machine=Machine(tool="", python=platform.python_version(), torch=""),
        candidate=Contestant(options.candidate.name, str(options.candidate)),
        base=Contestant("none"),
        comparison=gate_record.INTERLEAVED,
        minimum=_UNMEASURED,
        confidence=_UNMEASURED,
        gate_confidence=_UNMEASURED,
        seconds=0.0,
        cases=tuple(gate_cases.unmeasured(name, line, NO_BASELINE, why) for name, line in expected.items()),
    )


def lines(found: Record, keyword: str = "") -> list[str]:
    """The last lines: what was compared, each case that is not the same, and the verdict.

    Args:
        found: The record.
        keyword: The expression of -k; "" for none. The cases that it chose are shown, the same ones among them.
    """
    shown = [f"kernelproof: {found.candidate.label} against {found.base.label}, {found.machine.gpu or found.target}"]
    shown += [f"internal error: {error}" for error in found.internal_errors]
    if found.same_code:
        shown.append("A/A: both are the same code (equal digests of their sources)")
    left_out = [case for case in found.cases if case.reason == DESELECTED]
    causes: dict[tuple[str, str], list[str]] = {}
    for case in found.cases:
        if case.verdict == NOT_MEASURED:
            if not (keyword and case.reason == DESELECTED):
                causes.setdefault((case.reason, case.text), []).append(case.name)
        elif case.ratio is not None and (case.verdict != SAME or left_out):
            ratio = case.ratio
            percent = (ratio.value - 1) * 100
            shown.append(
                f"  {case.verdict}: {case.name}: {percent:+.1f} % time, ratio {ratio.value:.3f} "
                f"[{ratio.low:.3f}, {ratio.high:.3f}]"
            )
    for (reason, text), names in causes.items():
        which = names[0] if len(names) == 1 else f"{len(names)} cases, {names[0]} among them"
        shown.append(f"  {NOT_MEASURED} ({reason}): {which}: {text}")
    counts = [f"{word} {sum(case.verdict == word for case in found.cases)}" for word in gate_record.WORST_FIRST]
    shown.append(f"{len(found.cases)} cases in {found.seconds:.0f} s: {', '.join(counts)}")
    if left_out:
        shown.append(_part(found, len(left_out), " by -k" if keyword else ""))
    shown.append(f"verdict: {found.verdict} (exit code {found.exit_code})")
    return shown


def _part(found: Record, left_out: int, how: str) -> str:
    """What the cases that were asked for came to, and that they alone are no gate."""
    words = [case.verdict for case in found.cases if case.reason != DESELECTED]
    told = [f"{_many(words.count(word))} {word}" for word in gate_record.WORST_FIRST if word in words]
    return f"{', '.join(told) or 'nothing measured'}; {left_out} deselected{how}: not a gate"


def _many(count: int) -> str:
    return f"{count} case" if count == 1 else f"{count} cases"
