"""Puts a report into plain lines: what ran, on which target, each candidate's verdict, what did not run and why.

Promise: pure functions to text. A candidate that is turned away shows the first finding of each target with a
command that replays it from any folder in a fresh shell.
"""

import shlex
from pathlib import Path

from ci.report import AGAINST, Candidate, Finding, Report, Target


def lines(report: Report, command: str) -> list[str]:
    """The summary of a run.

    Args:
        report: What the suite reported.
        command: How a fresh shell calls `ci/verify`, of `replay_command`.
    """
    if report.usage_error is not None:
        return [f"kernelproof: called wrongly: {report.usage_error}"]
    gpu = report.gpu or "no GPU"
    found = [f"kernelproof: torch {report.torch}, {gpu}, profile {report.profile}, seed {report.seed}"]
    found += [f"internal error: {error}" for error in report.internal_errors]
    if not report.isolated:
        found.append("internal error: the candidates were not isolated")
    if not report.candidates:
        found.append("no candidate was judged")
    for candidate in report.candidates:
        found += _candidate_lines(candidate, command)
    tests = report.tests
    counts = [f"{tests.passed} passed", f"{tests.failed} failed", f"{tests.errors} errors", f"{tests.skipped} skipped"]
    found.append(f"tests: {', '.join(counts)}, {tests.deselected} deselected")
    found += [f"not run: {what}: {why}" for what, why in report.not_run]
    return found


def _candidate_lines(candidate: Candidate, command: str) -> list[str]:
    found = [f"{candidate.verdict}: {candidate.path}{' (shipped)' if candidate.shipped else ''}"]
    for target in candidate.targets:
        found.append(f"  {target.name}: {_describe(target)}")
        if target.unsupported:
            found.append(f"    unsupported: {', '.join(what for what, _ in target.unsupported)}")
        first = next((finding for each in target.properties for finding in each.findings), None)
        if target.verdict in AGAINST and first is not None:
            found.append(f"    {first.kind}: {first.text}")
            if first.case:
                found.append(f"    replay: {_replay(command, candidate, target, first)}")
    return found


def _describe(target: Target) -> str:
    reason = f" ({target.reason})" if target.reason else ""
    if not target.judged:
        return f"not judged{reason}"
    outcomes = [each.outcome for each in target.properties]
    counts = [f"{sum(each.examples for each in target.properties)} examples of {len(outcomes)} properties"]
    counts += [f"{outcomes.count(word)} {word}" for word in ("failed", "not-examined", "skipped") if word in outcomes]
    return f"{target.verdict}{reason}: {', '.join(counts)}"


def _replay(command: str, candidate: Candidate, target: Target, finding: Finding) -> str:
    which = [] if candidate.shipped else [f"--candidate={candidate.path}"]
    arguments = [*which, f"--target={target.name}", f"--case={finding.case}"]
    return " ".join([command, *(shlex.quote(argument) for argument in arguments)])


def replay_command(checkout: Path, python: str | None) -> str:
    """How a fresh shell calls `ci/verify`; `python` where another one than its default must be named."""
    verify = shlex.quote(str(checkout / "ci" / "verify"))
    return verify if python is None else f"PYTHON={shlex.quote(python)} {verify}"
