"""Reads the report that the suite writes, and derives the exit code and the plain summary from it.

Promise: a pure reader. A report of another schema, a missing field or a word that is not known here is a
`ReportError`, never a guess: what cannot be read cannot be green. Unknown further fields are ignored.
"""

import itertools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from ci import wording
from ci.exits import INTERNAL, OK, REJECTED, UNAVAILABLE, USAGE

# The version of the report that is read here.
SCHEMA = 1
VERDICTS = ("accepted", "rejected", "not-judged", "does-not-build", "timeout")
# Verdicts that turn a candidate away.
AGAINST = ("rejected", "does-not-build", "timeout")
# Outcomes of a property that was not looked at.
OUT = ("not-examined", "skipped")


class ReportError(Exception):
    """The report is not one that can be read; the message says what is wrong with it."""


@dataclass(frozen=True)
class Finding:
    """One thing found wrong: its kind, one line of text, the options of `ci/verify` that show it again, the case."""

    kind: str
    text: str
    replay: tuple[str, ...] = ()
    case: str = ""


@dataclass(frozen=True)
class Property:
    """How one property fared: its outcome, the examples it looked at, what it found, what it noticed and how often.

    `reason` says why it was not examined.
    """

    name: str
    outcome: str
    examples: int
    findings: tuple[Finding, ...]
    reason: str = ""
    notes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Target:
    """How a candidate fared on one target; `judged` is false where it did not run there, and `reason` says why.

    `instead` is the class that was judged where the file does not define the one that is asked for.
    """

    name: str
    judged: bool
    verdict: str
    reason: str
    unsupported: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...]
    instead: str = ""

    @property
    def examined(self) -> bool:
        """Whether more was looked at than whether the candidate answers at all."""
        return any(each.outcome not in OUT and each.name != "contact" for each in self.properties)


@dataclass(frozen=True)
class Candidate:
    """One candidate and its verdict over all targets."""

    path: str
    name: str
    shipped: bool
    verdict: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Tests:
    """pytest's counts."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    deselected: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Report:
    """What a run of the suite reports, as far as it is needed here."""

    torch: str
    gpu: str | None
    profile: str
    seed: str
    isolated: bool
    partial: bool
    usage_error: str | None
    internal_errors: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    tests: Tests
    not_run: tuple[tuple[str, str], ...] = field(default=())


def read(text: str) -> Report:
    """Read a report.

    Raises:
        ReportError: It is no report of this schema.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ReportError(f"the report is no JSON: {error}") from error
    root = Node(document, "report")
    if root.value.get("schema") != SCHEMA:
        raise ReportError(f"the report has schema {root.value.get('schema')!r}, expected {SCHEMA}")
    run = root.child("run")
    usage_error = run.optional_text("usage_error")
    if usage_error is not None:
        return called_wrongly(usage_error)
    environment, tests = root.child("environment"), root.child("tests")
    return Report(
        torch=str(environment.get("torch")),
        gpu=environment.optional_text("gpu"),
        profile=str(run.get("profile")),
        seed=str(run.get("seed")),
        isolated=run.get("isolated") is True,
        partial=run.value.get("partial") is True,
        usage_error=None,
        internal_errors=tuple(str(error) for error in run.items("internal_errors")),
        candidates=tuple(_candidate(node) for node in root.children("candidates")),
        tests=Tests(*(tests.count(name) for name in ("passed", "failed", "skipped", "deselected", "errors"))),
        not_run=tuple((node.text("what"), node.text("why")) for node in root.children("not_run")),
    )


def called_wrongly(error: str) -> Report:
    """The report of a run that did not begin because of its options; nothing else in it means anything."""
    return Report("", None, "", "", True, False, error, (), (), Tests())


class Node:
    """A JSON object with its place in the document, for errors that name it."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise ReportError(f"{place} is no object")
        self.value = cast("Mapping[str, object]", value)
        self.place = place

    def get(self, name: str) -> object:
        """The value of a field that must be there."""
        if name not in self.value:
            raise ReportError(f"{self.place} lacks {name!r}")
        return self.value[name]

    def text(self, name: str) -> str:
        """A field that must be text."""
        value = self.get(name)
        if not isinstance(value, str):
            raise ReportError(f"{self.place}.{name} is no text")
        return value

    def optional_text(self, name: str) -> str | None:
        """A field that is text, or null, or not there."""
        return None if self.value.get(name) is None else self.text(name)

    def count(self, name: str) -> int:
        """A field that must be a number of things."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ReportError(f"{self.place}.{name} is no count")
        return value

    def word(self, name: str, known: Sequence[str]) -> str:
        """A field that must be one of these words."""
        value = self.text(name)
        if value not in known:
            raise ReportError(f"{self.place}.{name} is {value!r}, expected one of {', '.join(known)}")
        return value

    def items(self, name: str) -> list[object]:
        """A field that must be a list."""
        value = self.get(name)
        if not isinstance(value, list):
            raise ReportError(f"{self.place}.{name} is no list")
        return value

    def child(self, name: str) -> "Node":
        """A field that must be an object."""
        return Node(self.get(name), f"{self.place}.{name}")

    def children(self, name: str) -> list["Node"]:
        """A field that must be a list of objects."""
        return [Node(item, f"{self.place}.{name}[{index}]") for index, item in enumerate(self.items(name))]


def _candidate(node: Node) -> Candidate:
    targets = node.child("targets")
    return Candidate(
        path=node.text("path"),
        name=node.text("name"),
        shipped=node.get("shipped") is True,
        verdict=node.word("verdict", VERDICTS),
        targets=tuple(_target(name, targets.child(name)) for name in targets.value),
    )


def _target(name: str, node: Node) -> Target:
    judged = node.word("status", ("judged", "not-judged")) == "judged"
    unsupported = node.child("unsupported") if "unsupported" in node.value else None
    return Target(
        name=name,
        judged=judged,
        verdict=node.word("verdict", VERDICTS) if judged else "not-judged",
        reason=node.optional_text("reason") or "",
        unsupported=tuple((what, str(why)) for what, why in unsupported.value.items()) if unsupported else (),
        properties=tuple(_property(child) for child in node.children("properties"))
        if "properties" in node.value
        else (),
        instead=node.optional_text("instead") or "",
    )


def _property(node: Node) -> Property:
    return Property(
        name=node.text("name"),
        outcome=node.word("outcome", ("passed", "failed", "reported", *OUT)),
        examples=node.count("examples"),
        findings=tuple(
            Finding(child.text("kind"), child.text("text"), _options(child), child.optional_text("case") or "")
            for child in node.children("findings")
        ),
        reason=node.optional_text("reason") or "",
        notes=_notes(node.child("notes")) if "notes" in node.value else (),
    )


def _options(finding: Node) -> tuple[str, ...]:
    """The options of the command that shows a finding again: what stands behind its variables and its name."""
    words = shlex.split(finding.optional_text("replay") or "")
    return tuple(itertools.dropwhile(lambda word: not word.startswith("-"), words))


def _notes(node: Node) -> tuple[tuple[str, int], ...]:
    return tuple((note, node.count(note)) for note in node.value)


def not_examined(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Property, candidate, target and reason of what was not examined, where others of the candidate were."""
    for candidate in report.candidates:
        for target in candidate.targets:
            if target.examined:
                for each in target.properties:
                    if each.outcome == "not-examined":
                        yield each.name, candidate.name, target.name, each.reason


def not_run(report: Report) -> list[tuple[str, str]]:
    """What was not run, and why, besides the properties of `not_examined`."""
    told = {wording.place(prop, candidate, target) for prop, candidate, target, _ in not_examined(report)}
    return [(what, why) for what, why in report.not_run if what not in told]


def exit_code(report: Report) -> int:
    """The exit code that this report means.

    1. Called wrongly: 64. 2. The suite itself failed, or judged without isolation: 70; its verdicts are worth nothing.
    3. A candidate is turned away on any target, or a test failed: 1. 4. A candidate could be judged nowhere
    or not be read, or nothing ran: 69. 5. Else 0: so too where a target was not judged beside one that accepted.
    """
    if report.usage_error is not None:
        return USAGE
    if report.internal_errors or not report.isolated:
        return INTERNAL
    if any(turned_away(candidate) for candidate in report.candidates) or report.tests.failed or report.tests.errors:
        return REJECTED
    judged_nowhere = [each for each in report.candidates if not any(target.judged for target in each.targets)]
    unjudged = [each for each in report.candidates if each.verdict == "not-judged"]
    unread = [what for what, why in report.not_run if why.startswith(wording.UNREAD)]
    if judged_nowhere or unjudged or unread or not report.candidates or not report.tests.passed:
        return UNAVAILABLE
    return OK


def turned_away(candidate: Candidate) -> bool:
    """Whether a candidate is turned away: as a whole or on one of its targets."""
    return candidate.verdict in AGAINST or any(target.verdict in AGAINST for target in candidate.targets)
