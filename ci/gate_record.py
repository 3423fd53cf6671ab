"""What the gate found, as a file: written by the run that measures, read by `ci/gate`, by pages and by people's tools.

Promise: standard library only; `to_json` and `read` are inverse. The verdict and the exit code follow from the cases by
the rules below and from nothing else. A record of another schema, a missing field, a word that is not known here, or a
verdict that does not follow from its cases is a `RecordError`: what cannot be read cannot be green.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from ci.exits import INTERNAL, OK, REJECTED, TRY_AGAIN, UNAVAILABLE
from ci.report import Node, ReportError

# The version of the record that is written and read here.
SCHEMA: Final = 1

FASTER, SAME, SLOWER, UNDECIDED, NOT_MEASURED = "faster", "same", "slower", "undecided", "not-measured"
VERDICTS: Final = (FASTER, SAME, SLOWER, UNDECIDED, NOT_MEASURED)
# The gate's verdict is the first of these that one of its cases has.
WORST_FIRST: Final = (SLOWER, NOT_MEASURED, UNDECIDED, FASTER, SAME)
EXIT_CODES: Final[Mapping[str, int]] = {
    SLOWER: REJECTED,
    NOT_MEASURED: UNAVAILABLE,
    UNDECIDED: TRY_AGAIN,
    FASTER: OK,
    SAME: OK,
}

# Why a case has no figures that count: one word of these for programs, `Case.text` for people. "" where it has.
MISSING, RENAMED, SKIPPED, DESELECTED, DISABLED = "missing", "renamed", "skipped", "deselected", "disabled"
NO_BASELINE, NO_GPU, ANOTHER_GPU, NO_MEMORY, INVALID = "no-baseline", "no-gpu", "another-gpu", "no-memory", "invalid"
FAILED, BUSY = "failed", "busy"
REASONS: Final[Mapping[str, str]] = {
    MISSING: "it is in the list of expected cases and no test measures it",
    RENAMED: "the case that was expected under this name has another one now",
    SKIPPED: "its test was skipped",
    DESELECTED: "its test was deselected",
    DISABLED: "measuring was switched off",
    NO_BASELINE: "there is nothing to compare with",
    NO_GPU: "this machine has no usable GPU",
    ANOTHER_GPU: "the baseline is of another GPU",
    NO_MEMORY: "memory does not suffice",
    BUSY: "something else uses the card: another gate that does not end, or any program",
    INVALID: "a timed result is wrong, or a time cannot be true",
    FAILED: "a contestant does not load, raises or dies",
}

# What the ratio of a case is taken from.
INTERLEAVED, STORED = "interleaved", "stored"


class RecordError(Exception):
    """The record is not one that can be read; the message says what is wrong with it."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its confidence interval, ``low <= value <= high``."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Contestant:
    """What was measured: the candidate, or its base.

    Attributes:
        label: For people: "HEAD", "the merge base with main", a file's name, "stored run 0003".
        path: The file that was loaded; "" where there was none.
        digest: SHA-256 of its sources, hexadecimal; "" where it is not known. Equal digests: the same code (A/A).
        commit: Its git commit, 40 digits; "" where it is not known. Ends in "+" where files differ from the commit.
    """

    label: str
    path: str = ""
    digest: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Machine:
    """What the figures are to be read beside.

    Attributes:
        tool: Version of kernelproof.
        python: Its version.
        torch: Its version.
        gpu: Name of the GPU; "" where there is none.
        driver: Of the GPU.
        cuda: That torch was built for.
        processor: Name of the CPU.
        clocks: MHz, over all cases: ``sm_mhz_lowest``, ``sm_mhz_highest``, ``sm_max_mhz``, the same with ``memory``;
            empty where they are not told.
        throttled: Why clocks were held down while measuring, each reason once, in words; "idle" is left out.
    """

    tool: str
    python: str
    torch: str
    gpu: str = ""
    driver: str = ""
    cuda: str = ""
    processor: str = ""
    clocks: Mapping[str, int] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: As in the list of expected cases, such as "65536x4095-bfloat16".
        shape: Such as "65536x4095".
        dtype: As torch names it.
        layout: As a case line writes it, such as "contiguous".
        bytes: Read and written by one call.
        rounds: In which candidate and base were timed one behind the other.
        verdict: One of `VERDICTS`.
        reason: One of `REASONS`, or "".
        text: In words: why it was not measured or not decided; "" where there is nothing to say.
        ratio: Time of the candidate / time of the base: above 1 the candidate is slower.
        candidate_of_copy: Time of a copy of the same bytes / time of the candidate: 1 is the speed of a copy.
        base_of_copy: The same of the base.
        control: Time of the copy / time of the copy, taken twice a round: how far the same work differs from itself.
        candidate_seconds: Median time of a call.
        base_seconds: The same of the base.
        copy_seconds: The same of the copy.
    """

    name: str
    verdict: str
    shape: str = ""
    dtype: str = ""
    layout: str = ""
    bytes: int = 0
    rounds: int = 0
    reason: str = ""
    text: str = ""
    ratio: Estimate | None = None
    candidate_of_copy: Estimate | None = None
    base_of_copy: Estimate | None = None
    control: Estimate | None = None
    candidate_seconds: float | None = None
    base_seconds: float | None = None
    copy_seconds: float | None = None


@dataclass(frozen=True)
class Record:
    """A run of the gate.

    Attributes:
        date: When it began, ISO 8601 with the offset from UTC.
        target: "cuda" or "cpu".
        machine: Where it ran.
        candidate: What is judged.
        base: What it is compared with.
        comparison: `INTERLEAVED`, or `STORED` where the base's figures are those of an earlier run.
        minimum: The least effect that counts, such as 0.03.
        confidence: Of every interval, such as 0.988: so much that all cases together hold to `gate_confidence`.
        gate_confidence: With it a gate of identical code says slower of none of its cases.
        seconds: That the run took.
        cases: All of them, in the order of the list of expected cases, then those that are not on it.
        notes: Remarks for people: cases that are not on the list, a driver other than the stored run's.
        internal_errors: What went wrong in the gate itself; the verdict is worth nothing then.
    """

    date: str
    target: str
    machine: Machine
    candidate: Contestant
    base: Contestant
    comparison: str
    minimum: float
    confidence: float
    gate_confidence: float
    seconds: float
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()
    internal_errors: tuple[str, ...] = ()

    @property
    def same_code(self) -> bool:
        """Whether candidate and base are the same code: an A/A run."""
        return bool(self.base.digest) and self.base.digest == self.candidate.digest

    @property
    def verdict(self) -> str:
        """Of the whole gate: the worst of its cases; without a case nothing was measured."""
        return worst(case.verdict for case in self.cases)

    @property
    def exit_code(self) -> int:
        """That `ci/gate` ends with."""
        return INTERNAL if self.internal_errors else EXIT_CODES[self.verdict]


def worst(verdicts: Iterable[str]) -> str:
    """The worst of these verdicts; `NOT_MEASURED` of none."""
    return min(verdicts, key=WORST_FIRST.index, default=NOT_MEASURED)


def to_json(record: Record) -> str:
    """The record as text, with what follows from it written out: `same_code`, `verdict`, `exit_code`."""
    derived = {"same_code": record.same_code, "verdict": record.verdict, "exit_code": record.exit_code}
    document = {"schema": SCHEMA, "kind": "gate", **derived, **asdict(record)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def read(text: str) -> Record:
    """Read a record; unknown further fields are ignored.

    Raises:
        RecordError: It is no record of this schema.
    """
    try:
        return _record(Node(json.loads(text), "record"))
    except ReportError as error:
        raise RecordError(str(error)) from error
    except ValueError as error:
        raise RecordError(f"the record is no JSON: {error}") from error


def _record(node: Node) -> Record:
    if (node.value.get("schema"), node.value.get("kind")) != (SCHEMA, "gate"):
        raise RecordError(
            f"the record has kind {node.value.get('kind')!r} and schema {node.value.get('schema')!r}, "
            f"expected 'gate' and {SCHEMA}"
        )
    found = Record(
        date=node.text("date"),
        target=node.word("target", ("cuda", "cpu")),
        machine=_machine(node.child("machine")),
        candidate=_contestant(node.child("candidate")),
        base=_contestant(node.child("base")),
        comparison=node.word("comparison", (INTERLEAVED, STORED)),
        minimum=_number(node, "minimum"),
        confidence=_number(node, "confidence"),
        gate_confidence=_number(node, "gate_confidence"),
        seconds=_number(node, "seconds"),
        cases=tuple(_case(child) for child in node.children("cases")),
        notes=_texts(node, "notes"),
        internal_errors=_texts(node, "internal_errors"),
    )
    for name, follows in (("verdict", found.verdict), ("exit_code", found.exit_code)):
        if node.get(name) != follows:
            raise RecordError(f"record.{name} is {node.get(name)!r}, but {follows!r} follows from its cases")
    return found


def _machine(node: Node) -> Machine:
    clocks = node.child("clocks")
    return Machine(
        tool=node.text("tool"),
        python=node.text("python"),
        torch=node.text("torch"),
        gpu=node.text("gpu"),
        driver=node.text("driver"),
        cuda=node.text("cuda"),
        processor=node.text("processor"),
        clocks={name: clocks.count(name) for name in clocks.value},
        throttled=_texts(node, "throttled"),
    )


def _contestant(node: Node) -> Contestant:
    return Contestant(node.text("label"), node.text("path"), node.text("digest"), node.text("commit"))


def _case(node: Node) -> Case:
    found = Case(
        name=node.text("name"),
        verdict=node.word("verdict", VERDICTS),
        shape=node.text("shape"),
        dtype=node.text("dtype"),
        layout=node.text("layout"),
        bytes=node.count("bytes"),
        rounds=node.count("rounds"),
        reason=node.word("reason", ("", *REASONS)),
        text=node.text("text"),
        ratio=_estimate(node, "ratio"),
        candidate_of_copy=_estimate(node, "candidate_of_copy"),
        base_of_copy=_estimate(node, "base_of_copy"),
        control=_estimate(node, "control"),
        candidate_seconds=_optional_number(node, "candidate_seconds"),
        base_seconds=_optional_number(node, "base_seconds"),
        copy_seconds=_optional_number(node, "copy_seconds"),
    )
    if (found.verdict == NOT_MEASURED) != bool(found.reason):
        raise RecordError(f"{node.place} is {found.verdict} with the reason {found.reason!r}: only one of them says so")
    if found.verdict != NOT_MEASURED and found.ratio is None:
        raise RecordError(f"{node.place} is {found.verdict} without a ratio")
    return found


def _estimate(node: Node, name: str) -> Estimate | None:
    if node.get(name) is None:
        return None
    child = node.child(name)
    return Estimate(*(_number(child, part) for part in ("value", "low", "high")))


def _number(node: Node, name: str) -> float:
    value = node.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ReportError(f"{node.place}.{name} is no number")
    return float(value)


def _optional_number(node: Node, name: str) -> float | None:
    return None if node.get(name) is None else _number(node, name)


def _texts(node: Node, name: str) -> tuple[str, ...]:
    found = node.items(name)
    if not all(isinstance(each, str) for each in found):
        raise ReportError(f"{node.place}.{name} holds something that is no text")
    return tuple(str(each) for each in found)
