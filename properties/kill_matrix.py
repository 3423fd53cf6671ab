"""The kill matrix: every known-bad candidate is rejected for its own reason, every honest one is accepted.

A file under ``mutants/`` says in its docstring what is wrong with it and which kinds of finding may say so; a file
under ``honest/`` is right in all it supports. Both are judged exactly as any candidate is, save that judging a mutant
ends at the first property that fails, and that nothing is remembered between runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from . import catalogue, engine
from .cases import Case
from .engine import Examination, Property
from .findings import Finding, Kind
from .profiles import PROFILES
from .session import Seat, Session

#: Under this name a line of the matrix travels in a test's ``user_properties``.
KEY = "kernelproof-kill"
FOLDER = Path(__file__).resolve().parent
#: Elements of the reported case, unless the docstring says otherwise: what a person can still print and look at.
SMALL = 4096
#: Every draw of the matrix comes from this seed: a mutant that lives on luck is then alive or dead for everybody.
SEED = 1
_FIELD = re.compile(r"^(Seen|Target|Found as|Killed by|Smallest case|Limits|Replay): (.+)$", re.MULTILINE)
#: Looked at last: their cases are large.
_LAST = ("many-rows", "long-rows")


@dataclass(frozen=True)
class Specimen:
    """What a file of the matrix says of itself.

    Attributes:
        path: the candidate's file.
        fault: the docstring's first line.
        seen: where the fault was met: an address or words.
        target: ``any``, or the target that it needs.
        kinds: of findings, one of which must reject it; none for an honest one.
        killer: the property that must reject it; "" where the first that does is the right one.
        smallest: most elements that the reported case may have.
        replays: whether the reported case fails in a fresh process: not what depends on chance or on earlier calls.
        limits: names of `runner.Limits` and the seconds that are enough for it.
    """

    path: Path
    fault: str
    seen: str
    target: str
    kinds: frozenset[Kind]
    killer: str
    smallest: int
    replays: bool
    limits: dict[str, float]

    def __str__(self) -> str:
        """For test ids."""
        return self.path.stem


def read(path: Path) -> Specimen:
    """The specimen that a file's docstring describes; nothing is imported.

    Raises:
        ValueError: a field is missing or says what it may not.
    """
    text = path.read_text(encoding="utf-8")
    match = re.match(r'"""(.+?)"""', text, re.DOTALL)
    if match is None:
        raise ValueError(f"{path.name} does not begin with a docstring")
    given = dict(_FIELD.findall(match[1]))
    honest = path.parent.name == "honest"
    missing = [name for name in ("Seen", "Target", "Found as") if name not in given]
    if missing and not honest:
        raise ValueError(f"the docstring of {path.name} lacks the line {missing[0]!r}: ...")
    elements = re.match(r"\d+", given.get("Smallest case", str(SMALL)))
    if elements is None:
        raise ValueError(f"'Smallest case' of {path.name} does not begin with a number of elements")
    limits = re.findall(r"(build|call) (\d+(?:\.\d+)?) s", given.get("Limits", ""))
    return Specimen(
        path=path,
        fault=match[1].strip().splitlines()[0],
        seen=given.get("Seen", ""),
        target=given.get("Target", "any"),
        kinds=frozenset(Kind(word) for word in given.get("Found as", "").split()),
        killer=given.get("Killed by", ""),
        smallest=int(elements[0]),
        replays=given.get("Replay") != "passes",
        limits={name: float(seconds) for name, seconds in limits},
    )


def specimens(folder: str) -> list[Specimen]:
    """All of ``mutants`` or ``honest``, by name."""
    return [read(path) for path in sorted((FOLDER / folder).glob("*.py"))]


@dataclass(frozen=True)
class Kill:
    """How a specimen fared.

    Attributes:
        specimen: which.
        property: name of the property that rejected it; "" where none did.
        findings: of that property.
        case: the smallest failing case, or None where no case is needed.
        examinations: of all properties that were looked at.
    """

    specimen: Specimen
    property: str
    findings: tuple[Finding, ...]
    case: Case | None
    examinations: tuple[Examination, ...]


def order(killer: str = "", target: str = "cpu") -> list[Property]:
    """The properties that are checked on a target: the named one first, those with large cases last."""
    found = [prop for prop in catalogue.CATALOGUE.values() if target in prop.targets]
    return sorted(found, key=lambda prop: (prop.name != killer, prop.name in _LAST))


def judge(session: Session, specimen: Specimen) -> Kill:
    """Judge a specimen up to its first failing property; the one that is said to kill it comes first."""
    seat = Seat(specimen.path, "cpu", shipped=False)
    subject = session.subject(seat)
    subject.limits = subject.runner.limits = replace(subject.limits, **specimen.limits)
    seen: list[Examination] = []
    try:
        broken = subject.probe()
        if broken is not None:
            return Kill(specimen, "contact", (broken,), None, ())
        for prop in order(specimen.killer):
            seen.append(engine.examine(subject, prop, PROFILES["kp-quick"], SEED))
            if seen[-1].outcome == "failed":
                return Kill(specimen, prop.name, seen[-1].findings, seen[-1].case, tuple(seen))
        return Kill(specimen, "", (), None, tuple(seen))
    finally:
        session.leave(seat)


def again(session: Session, kill: Kill) -> tuple[Finding, ...]:
    """The findings of a kill's case when it is replayed in a fresh worker of a fresh subject."""
    seat = Seat(kill.specimen.path, "cpu", shipped=False)
    subject = session.subject(seat)
    subject.limits = subject.runner.limits = replace(subject.limits, **kill.specimen.limits)
    try:
        broken = subject.probe()
        if broken is not None:
            return (broken,)
        if kill.case is None or kill.property not in catalogue.CATALOGUE:
            return ()
        return engine.replay(subject, catalogue.CATALOGUE[kill.property], kill.case).findings
    finally:
        session.leave(seat)


def complaint(kill: Kill) -> str:
    """What is wrong with a mutant's end; "" where it died of its own fault, of a small case."""
    mutant = kill.specimen
    if not kill.findings:
        return f"{mutant} survives: {mutant.fault}"
    if mutant.killer and kill.property != mutant.killer:
        return f"{mutant} passes {mutant.killer}, which its docstring says kills it"
    if kill.findings[0].kind not in mutant.kinds:
        return f"{mutant} is rejected as {kill.findings[0].kind}, expected {' or '.join(sorted(mutant.kinds))}"
    if kill.case is not None and kill.case.numel > mutant.smallest:
        return f"{mutant}'s smallest case has {kill.case.numel} elements, expected at most {mutant.smallest}"
    return ""


def line(kill: Kill) -> str:
    """The kill's line in the matrix."""
    if not kill.findings:
        return f"{kill.specimen!s:32} survives {sum(each.examples for each in kill.examinations)} cases"
    finding = kill.findings[0]
    case = f"{kill.case}: " if kill.case else ""
    return f"{kill.specimen!s:32} {kill.property:14} {finding.kind:16} {case}{finding.text}"


def table(lines: Iterable[str]) -> str:
    """The matrix as text: one line a mutant, sorted, and how many were killed by what."""
    kept = sorted(lines)
    killers = Counter(text.split()[1] for text in kept)
    counts = ", ".join(f"{name} {count}" for name, count in killers.most_common())
    return "\n".join([*kept, f"{len(kept)} mutants, killed by: {counts}"])
