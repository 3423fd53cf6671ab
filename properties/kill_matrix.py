"""The kill matrix: every known-bad candidate is rejected for its own reason, every honest one is accepted.

A file under ``mutants/`` says in its docstring what is wrong with it and which kinds of finding may say so; a file
under ``honest/`` is right in all it supports. Each is judged on every target that it can run on, exactly as any
candidate is, save for three things: judging a mutant ends at the first property that fails, nothing is remembered
between runs, and the properties of `_DEAR` are left to those that name one as their killer (`memcheck` to the honest
kernels, too).
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kernels.errors import BuildError
from kernels.toolchain import find_cuda

from . import catalogue, engine, examination
from .cases import Case, parse
from .examination import Examination, Property
from .findings import DEADLY, Finding, Kind
from .limits import Limits
from .profiles import PROFILES
from .session import Seat, Session
from .subject import REQUIRABLE, Subject

FOLDER = Path(__file__).resolve().parent
#: Elements of the reported case, unless the docstring says otherwise: what a person can still print and look at.
SMALL = 4096
#: Every draw of the matrix comes from this seed: a mutant that lives on luck is then alive or dead for everybody.
SEED = 1
_FIELD = re.compile(
    r"^(Seen|Target|Needs|Promises|Found as|In words|Killed by|Case|Smallest case|Limits|Replay): (.+)$", re.MULTILINE
)
#: Where a specimen may run.
_TARGETS = {"any": ("cpu", "cuda"), "cpu": ("cpu",), "cuda": ("cuda",)}
#: Looked at last: their cases are large.
_LAST = ("many-rows", "long-rows")
#: Minutes and half a card's memory; a process under a slow tool; seconds for dynamo, and then nobody is rejected: only
#: where `order` finds that they are asked for.
_DEAR = ("huge", "memcheck", "compile")
#: Seconds on top of a specimen's own limits on a GPU: the first call of every new worker makes a context, which takes
#: seconds where several processes share the card.
_CONTEXT = 4.0
#: As thorough as a judgement, for who only asks whether a property fails.
_HASTY = replace(PROFILES["kp-quick"], shrink_seconds=0.0, deaths=1)


@dataclass(frozen=True)
class Specimen:
    """What a file of the matrix says of itself.

    Attributes:
        path: the candidate's file.
        fault: the docstring's first line.
        seen: where the fault was met: an address or words.
        targets: where it can run.
        needs: what else it cannot run without: ``nvcc``, or names of modules.
        promises: names of `subject.REQUIRABLE` that it is judged on as if it had promised them.
        kinds: of findings, one of which must reject it; none for an honest one.
        words: what the finding must say; "" for anything.
        killer: the property that must reject it; "" where the first that does is the right one.
        case: the only case to look at, where a search would take minutes; None otherwise.
        smallest: most elements that the reported case may have.
        replays: whether the reported case fails in any fresh process: not what depends on chance or on earlier calls.
        limits: names of `limits.Limits` and the seconds that are enough for it.
    """

    path: Path
    fault: str
    seen: str
    targets: tuple[str, ...]
    needs: tuple[str, ...]
    promises: frozenset[str]
    kinds: frozenset[Kind]
    words: str
    killer: str
    case: Case | None
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
    target = given.get("Target", "any")
    if target not in _TARGETS:
        raise ValueError(f"'Target: {target}' of {path.name} is not one of {', '.join(_TARGETS)}")
    unknown = sorted(set(given.get("Promises", "").split()) - set(REQUIRABLE))
    if unknown:
        raise ValueError(f"'Promises' of {path.name} names {unknown[0]!r}, which is not one of {', '.join(REQUIRABLE)}")
    if "Case" in given and given.get("Killed by") not in catalogue.CATALOGUE:
        raise ValueError(f"'Case' of {path.name} needs a line 'Killed by' that names the property it is a case of")
    limits = re.findall(r"(build|call) (\d+(?:\.\d+)?) s", given.get("Limits", ""))
    return Specimen(
        path=path,
        fault=match[1].strip().splitlines()[0],
        seen=given.get("Seen", ""),
        targets=_TARGETS[target],
        needs=tuple(given.get("Needs", "").split()),
        promises=frozenset(given.get("Promises", "").split()),
        kinds=frozenset(Kind(word) for word in given.get("Found as", "").split()),
        words=given.get("In words", ""),
        killer=given.get("Killed by", ""),
        case=parse(given["Case"]) if "Case" in given else None,
        smallest=int(elements[0]),
        replays=given.get("Replay") != "passes",
        limits={name: float(seconds) for name, seconds in limits},
    )


def specimens(folder: str) -> list[Specimen]:
    """All of ``mutants`` or ``honest``, by name; those that hang last: what shares a card with them is slow."""
    found = [read(path) for path in sorted((FOLDER / folder).glob("*.py"))]
    return sorted(found, key=lambda specimen: Kind.TIMEOUT in specimen.kinds)


@dataclass(frozen=True)
class Trial:
    """A specimen on one target; ``missing`` says what this machine lacks for it, "" where nothing."""

    specimen: Specimen
    target: str
    missing: str = ""

    def __str__(self) -> str:
        """For test ids."""
        return f"{self.specimen}-{self.target}"


def trials(found: Iterable[Specimen], targets: tuple[str, ...], no_gpu: str) -> list[Trial]:
    """Every specimen on every chosen target that it can run on.

    A target that is not here is passed over where the specimen has another one; where it has none, one trial stands
    for it and says what is missing.

    Args:
        found: specimens.
        targets: that were asked for.
        no_gpu: why there is no usable GPU, or "".
    """
    chosen = []
    for specimen in found:
        asked = [target for target in specimen.targets if target in targets]
        here = [target for target in asked if target == "cpu" or not no_gpu]
        lacks = "; ".join(filter(None, map(_lacks, specimen.needs))) if here else ""
        chosen += [Trial(specimen, target, lacks) for target in here]
        if asked and not here:
            chosen.append(Trial(specimen, asked[0], no_gpu))
    return chosen


@cache
def _lacks(need: str) -> str:
    """Why this machine has not got something that specimens need; "" where it has."""
    if need != "nvcc":
        return "" if importlib.util.find_spec(need) else f"{need} is not installed"
    try:
        find_cuda()
    except BuildError as error:
        return error.problem
    return ""


@dataclass(frozen=True)
class Kill:
    """How a specimen fared.

    Attributes:
        trial: of which specimen, and where.
        property: name of the property that rejected it; "" where none did.
        findings: of that property.
        case: the smallest failing case, or None where no case is needed.
        examinations: of all properties that were looked at.
        again: what its case shows in one more fresh process; None where that is not looked at.
    """

    trial: Trial
    property: str
    findings: tuple[Finding, ...]
    case: Case | None
    examinations: tuple[Examination, ...]
    again: tuple[Finding, ...] | None = None


def order(trial: Trial) -> list[Property]:
    """The properties that a specimen is judged on: its killer first, those with large cases last."""
    specimen = trial.specimen
    asked = {specimen.killer}
    if not specimen.kinds and specimen.targets == ("cuda",):
        asked.add("memcheck")  # a kernel of its own: torch's need no such look
    checked = [prop for prop in catalogue.CATALOGUE.values() if trial.target in prop.targets]
    found = [prop for prop in checked if prop.name not in _DEAR or prop.name in asked]
    return sorted(found, key=lambda prop: (prop.name != specimen.killer, prop.name in _LAST))


def judge(session: Session, trial: Trial) -> Kill:
    """Judge a specimen up to its first failing property; the one that is said to kill it comes first."""
    specimen, seen = trial.specimen, list[Examination]()
    with _subject(session, trial) as subject:
        broken = subject.probe()
        if broken is not None:
            return Kill(trial, "contact", (broken,), None, ())
        for prop in order(trial):
            if specimen.case is not None and prop.name == specimen.killer:
                seen.append(engine.replay(subject, prop, specimen.case))
            else:
                seen.append(engine.examine(subject, prop, PROFILES["kp-quick"], SEED))
            if seen[-1].outcome == "failed":
                kill = Kill(trial, prop.name, seen[-1].findings, seen[-1].case, tuple(seen))
                return replace(kill, again=_again(subject, prop, kill.case)) if _replayed(trial) else kill
        return Kill(trial, "", (), None, tuple(seen))


def killers(session: Session, kill: Kill) -> dict[str, Kind]:
    """The property that rejected a mutant and, where there is one, another that does; each with its finding's kind.

    Nobody looks for a smaller case, nor for a third property: who is the only one is what is asked.
    """
    found = {kill.property: kill.findings[0].kind} if kill.findings else {}
    if not kill.examinations:
        return found  # nothing can be asked of what does not load
    with _subject(session, kill.trial) as subject:
        subject.probe()
        for prop in order(kill.trial):
            if prop.name in found:
                continue
            seen = engine.examine(subject, prop, _HASTY, SEED)
            if seen.outcome == "failed":
                return found | {prop.name: seen.findings[0].kind}
    return found


def _replayed(trial: Trial) -> bool:
    """Whether a kill is to be shown once more: on one target, since a process on a GPU costs a second and more."""
    return trial.specimen.replays and trial.target == trial.specimen.targets[0]


def _again(subject: Subject, prop: Property, case: Case | None) -> tuple[Finding, ...]:
    """What a killing case shows in one more fresh process, to which nothing else has happened."""
    assert case is not None
    subject.runner.renew()
    return tuple(examination.run_case(subject, prop, case).findings)


@contextlib.contextmanager
def _subject(session: Session, trial: Trial) -> Iterator[Subject]:
    """A fresh subject with the specimen's own promises and limits; its workers end with the block."""
    seat = Seat(trial.specimen.path, trial.target, shipped=False)
    subject = session.subject(seat)
    subject.required |= trial.specimen.promises
    subject.limits = subject.runner.limits = limits(session, trial)
    try:
        yield subject
    finally:
        session.leave(seat)


def limits(session: Session, trial: Trial) -> Limits:
    """A run's time limits, with those that are enough for a specimen."""
    more = _CONTEXT if trial.target == "cuda" else 0.0
    own = {name: seconds + more for name, seconds in trial.specimen.limits.items()}
    return replace(session.options.limits, **own)


def not_run(kill: Kill) -> str:
    """Why a survivor's killer could not be asked: memory or a tool was missing. "" where it was asked."""
    killer = kill.trial.specimen.killer
    missing = [why for each in kill.examinations if each.property.name == killer for why in each.not_run.values()]
    return missing[0] if missing and not kill.findings else ""


def complaint(kill: Kill) -> str:
    """What is wrong with a mutant's end; "" where it died of its own fault, of a small case."""
    mutant = kill.trial.specimen
    if not kill.findings:
        return f"{kill.trial} survives: {mutant.fault}"
    if mutant.killer and kill.property != mutant.killer:
        return f"{kill.trial} passes {mutant.killer}, which its docstring says kills it"
    if kill.findings[0].kind not in mutant.kinds:
        return f"{kill.trial} is rejected as {kill.findings[0].kind}, expected {' or '.join(sorted(mutant.kinds))}"
    if mutant.words not in kill.findings[0].text:
        return f"{kill.trial} is rejected without the words {mutant.words!r}"
    if kill.case is not None and kill.case.numel > mutant.smallest:
        return f"{kill.trial}'s smallest case has {kill.case.numel} elements, expected at most {mutant.smallest}"
    # Whether a crash is an access past the input takes further runs to find out: one more end is enough here.
    expected = mutant.kinds | (DEADLY if mutant.kinds & DEADLY else frozenset())
    if kill.again is not None and not expected & {finding.kind for finding in kill.again}:
        return f"{kill.trial}'s case, {kill.property}:{kill.case}, passes or fails otherwise in a fresh process"
    return ""
