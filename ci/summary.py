"""Puts a report into plain lines: what ran, on which target, each candidate's verdict, what did not run and why.

Promise: pure functions to text. A candidate that is turned away shows the first finding of each target with a
command that replays it from any folder in a fresh shell.
"""

import shlex
from pathlib import Path

from ci import wording
from ci.report import AGAINST, OUT, Candidate, Finding, Report, Target, not_examined, not_run
from ci.wording import many


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
    if report.partial:
        found.append("only a part of the properties was run: this is no verdict on a candidate that passes")
    if not report.candidates:
        ran = report.tests.passed + report.tests.failed + report.tests.errors + report.tests.skipped
        found.append("no candidate was judged" + ("" if ran else ": no property was chosen"))
    for candidate in report.candidates:
        found += _candidate_lines(candidate, command, report.partial)
    tests = report.tests
    counts = [f"{tests.passed} passed", f"{tests.failed} failed", f"{tests.errors} errors", f"{tests.skipped} skipped"]
    found.append(f"tests: {', '.join(counts)}, {tests.deselected} deselected")
    return [*found, *wording.not_run(not_run(report)), *wording.not_examined(not_examined(report))]


def _candidate_lines(candidate: Candidate, command: str, partial: bool) -> list[str]:
    shipped = " (shipped)" if candidate.shipped else ""
    part = " in what was run" if partial and candidate.verdict == "accepted" else ""
    found = [f"{candidate.verdict}{part}: {candidate.path}{shipped}"]
    for target in candidate.targets:
        found.append(f"  {target.name}: {_describe(target)}")
        failed = [finding for each in target.properties if each.outcome == "failed" for finding in each.findings]
        if target.verdict in AGAINST and failed:
            found.append(f"    {failed[0].kind}: {failed[0].text}")
            if failed[0].case:
                found.append(f"    replay: {_again(command, failed[0])}")
        found += [f"    {wording.judged_instead(target.instead)}"] if target.instead else []
        told = [
            (each.name, each.findings[0].text, each.findings[0].case, _again(command, each.findings[0]))
            for each in target.properties
            if each.outcome == "reported"
        ]
        remarks = wording.not_kept(told, failed[0].text if failed else "")
        remarks += wording.not_supported(target.unsupported)
        remarks += wording.noticed(note for each in target.properties for note in each.notes)
        found += [f"    {remark}" for remark in remarks]
    return found


def _again(command: str, finding: Finding) -> str:
    return " ".join([command, *map(shlex.quote, finding.replay)])


def _describe(target: Target) -> str:
    reason = f" ({target.reason})" if target.reason else ""
    if not target.judged:
        return f"not-judged{reason}"
    outcomes = [each.outcome for each in target.properties]
    looked_at = [each for each in target.properties if each.outcome not in OUT]
    counts = [f"{many(sum(each.examples for each in looked_at), 'example')} of {many(len(looked_at), 'property')}"]
    counts += [f"{outcomes.count(word)} {word}" for word in ("failed", *OUT) if word in outcomes]
    return f"{target.verdict}{reason}: {', '.join(counts)}"


def replay_command(checkout: Path, python: str | None) -> str:
    """How a fresh shell calls `ci/verify`; `python` where another one than its default must be named."""
    verify = shlex.quote(str(checkout / "ci" / "verify"))
    return verify if python is None else f"PYTHON={shlex.quote(python)} {verify}"
