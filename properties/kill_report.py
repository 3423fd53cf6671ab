"""The kill matrix as text and as a Markdown file, from facts that travel as JSON between processes."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

from . import catalogue
from .kill_matrix import Kill
from .targets import Machine
from .usual_check import CASE, TOLERANCES, Verdict

#: Under these names a fact travels in a test's ``user_properties``: a mutant's, an honest variant's.
KEY, HONEST_KEY = "kernelproof-kill", "kernelproof-honest"
#: Longest words of a finding in the file's table, in characters.
_WORDS = 110
#: Of the usual check's columns.
_SIZES = tuple(f"{each:.0e}".replace("e-0", "e-") for each in TOLERANCES)
_TITLES = tuple(f"allclose {size}" for size in _SIZES)


@dataclass(frozen=True)
class Fact:
    """What is to be told of a specimen on one target.

    Attributes:
        name: of its file.
        target: where it ran.
        honest: whether it is one that must be accepted.
        fault: what is wrong with it, in its own words.
        killer: the property that rejected it first; "" where none did.
        kind: of that finding.
        case: the reported case; "" where there is none.
        text: the finding.
        cases: judged in all.
        usual: the usual check's words, one a tolerance.
        killers: by property that rejects it, the kind: one where it is the only one, two where it is not; empty where
            none was asked but the first.
    """

    name: str
    target: str
    honest: bool
    fault: str
    killer: str
    kind: str
    case: str
    text: str
    cases: int
    usual: tuple[str, ...]
    killers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The fact as JSON; the killer stands there as ``property``, as in every report."""
        fields = asdict(self)
        return json.dumps({"property": fields.pop("killer"), **fields})

    @property
    def key(self) -> str:
        """The name under which it travels."""
        return HONEST_KEY if self.honest else KEY

    @property
    def survives(self) -> bool:
        """Whether nothing rejects it."""
        return not self.killer

    @property
    def fooled(self) -> tuple[bool, ...]:
        """For each tolerance whether the usual check accepts it."""
        return tuple(word == "accepts" for word in self.usual)


def fact(kill: Kill, usual: Verdict, killers: dict[str, str] | None = None) -> Fact:
    """The fact that a kill is."""
    finding = kill.findings[0] if kill.findings else None
    return Fact(
        name=kill.trial.specimen.path.stem,
        target=kill.trial.target,
        honest=not kill.trial.specimen.kinds,
        fault=kill.trial.specimen.fault,
        killer=kill.property,
        kind="" if finding is None else str(finding.kind),
        case="" if kill.case is None else str(kill.case),
        text="" if finding is None else finding.text,
        cases=sum(each.examples for each in kill.examinations),
        usual=usual.words(),
        killers=killers or {},
    )


def read(text: str) -> Fact:
    """The inverse of a fact's text."""
    fields = json.loads(text)
    return Fact(killer=fields.pop("property"), usual=tuple(fields.pop("usual")), **fields)


def line(told: Fact) -> str:
    """A fact's line in a terminal."""
    who = f"{told.name:32} {told.target:4} {' '.join(f'{word:13}' for word in told.usual)}"
    if told.survives:
        return f"{who} survives {told.cases} cases"
    case = f"{told.case}: " if told.case else ""
    return f"{who} {told.killer:14} {told.kind:16} {case}{told.text}"


def table(facts: Iterable[Fact]) -> str:
    """The matrix for a terminal: one line a mutant and target, sorted, and how many were killed by what."""
    mutants = sorted((each for each in facts if not each.honest), key=lambda each: (each.name, each.target))
    targets = Counter(each.target for each in mutants)
    killers = Counter(each.killer or "nothing" for each in mutants)
    where = ", ".join(f"{count} on {name}" for name, count in sorted(targets.items()))
    counts = ", ".join(f"{name} {count}" for name, count in killers.most_common())
    accepted = ", ".join(
        f"{sum(told.fooled[number] for told in mutants)} at {size}" for number, size in enumerate(_SIZES)
    )
    usual = " ".join(f"{title:13}" for title in _TITLES)
    head = f"{'mutant':32} {'':4} {usual} rejected by"
    last = f"{len({each.name for each in mutants})} mutants, {where}; killed by: {counts}"
    return "\n".join([head, *map(line, mutants), last, f"torch.allclose accepts of them: {accepted}"])


def sole(facts: Iterable[Fact]) -> dict[str, list[str]]:
    """For each property the mutants, with their target, that it alone rejects."""
    found: dict[str, list[str]] = {name: [] for name in catalogue.CATALOGUE}
    for told in facts:
        if len(told.killers) == 1 and not told.honest:
            found.setdefault(next(iter(told.killers)), []).append(f"{told.name} ({told.target})")
    return {name: sorted(names) for name, names in found.items()}


def markdown(facts: Sequence[Fact], not_judged: Sequence[tuple[str, str]], machine: Machine) -> str:
    """The matrix as a Markdown file.

    Args:
        facts: of all specimens that were judged.
        not_judged: the others, with the reason.
        machine: where.
    """
    mutants = sorted((each for each in facts if not each.honest), key=lambda each: (each.target, each.name))
    shape = "x".join(map(str, CASE.shape))
    lines = [
        "# What the suite kills, and what the usual check lets through",
        "",
        "Written by `pytest -m mutants --kill-matrix=FILE`; not to be edited. Every file under `mutants/` is wrong on "
        "purpose, every one under `honest/` is right in all that it supports.",
        f"*The usual check* runs the eager model and the candidate on one float32 input of {shape}, uniform in [0, 1), "
        "and compares shape and values by `torch.allclose`, with one tolerance as `atol` and `rtol`.",
        "",
        *_where(machine),
        "",
        *_counts(facts),
        "",
        "## Every mutant",
        "",
        f"| mutant | what is wrong | rejected by | as | {' | '.join(_TITLES)} |",
        "|---|---|---|---|" + "---|" * len(TOLERANCES),
        *map(_row, mutants),
        "",
    ]
    if any(told.killers for told in mutants):
        lines += _sole_section(mutants)
    if not_judged:
        lines += ["## Not judged here", ""]
        for why, names in _by_reason(not_judged).items():
            lines += [f"{len(names)}, since {why}: {', '.join(f'`{name}`' for name in names)}.", ""]
    return "\n".join(lines)


def _where(machine: Machine) -> list[str]:
    card = f"{machine.gpu}, driver {machine.driver}" if machine.gpu else f"no GPU ({machine.no_gpu})"
    return [
        "| date | Python | torch | processor | GPU |",
        "|---|---|---|---|---|",
        f"| {datetime.datetime.now(tz=datetime.UTC).date()} | {machine.python} | {machine.torch} | {machine.processor} "
        f"| {card} |",
    ]


def _counts(facts: Sequence[Fact]) -> list[str]:
    targets = sorted({told.target for told in facts})

    def row(title: str, count: Callable[[list[Fact]], str]) -> str:
        columns = [count([told for told in facts if told.target == target]) for target in targets]
        return f"| {title} | {' | '.join(columns)} |"

    def killed(each: list[Fact]) -> str:
        mutants = [told for told in each if not told.honest]
        return f"{sum(not told.survives for told in mutants)} of {len(mutants)}"

    def accepted(number: int) -> Callable[[list[Fact]], str]:
        return lambda each: str(sum(told.fooled[number] for told in each if not told.honest))

    def honest(each: list[Fact]) -> str:
        kept = [told for told in each if told.honest]
        return f"{sum(told.survives for told in kept)} of {len(kept)}"

    return [
        f"| | {' | '.join(targets)} |",
        "|---|" + "---|" * len(targets),
        row("mutants rejected by the suite", killed),
        *(row(f"mutants accepted by the usual check, {size}", accepted(number)) for number, size in enumerate(_SIZES)),
        row("honest variants accepted by the suite", honest),
    ]


def _row(told: Fact) -> str:
    words = " | ".join(f"**{word}**" if word == "accepts" else word for word in told.usual)
    name = f"[{told.name}](mutants/{told.name}.py)" + (" (cuda)" if told.target == "cuda" else "")
    return f"| {name} | {_cell(told.fault)} | {told.killer or '**survives**'} | {told.kind} | {words} |"


def _cell(text: str) -> str:
    short = text if len(text) <= _WORDS else f"{text[: _WORDS - 3]}..."
    return short.replace("|", "\\|")


def _sole_section(mutants: Sequence[Fact]) -> list[str]:
    asked = [told for told in mutants if told.killers]
    found = {name: names for name, names in sole(asked).items() if names}
    alone = sum(map(len, found.values()))
    return [
        "## Which property is the only one to reject a mutant",
        "",
        f"Of {len(asked)} mutants that the other properties were asked about, too, {alone} are rejected by one alone.",
        "",
        "| property | the only one to reject |",
        "|---|---|",
        *(f"| `{name}` | {', '.join(f'`{each}`' for each in names)} |" for name, names in found.items()),
        "",
    ]


def _by_reason(not_judged: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, why in sorted(not_judged):
        found.setdefault(why, []).append(name)
    return found
