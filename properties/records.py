"""Facts of a run as plain JSON types: what travels from a test (and from an xdist worker) to summary and report file.

`subject_record` and `property_record` write them; `assemble` puts them together as the report (schema version 1).
"""

from __future__ import annotations

import hashlib
import math
import os
import shlex
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ci.exits import NAMED_PYTHON, STARTED_BY
from ci.summary import replay_command as command_of_verify
from kernels.folder import VARIABLE, cache_folder

from . import tool
from .cases import Case
from .catalogue import CATALOGUE
from .coverage import CLASSES
from .examination import Examination, Property
from .findings import Finding, Kind
from .limits import Limits
from .operators import Metric
from .options import ROOT, Options
from .profiles import DEFAULT
from .subject import Subject
from .targets import Machine

SCHEMA = 1
#: Why a candidate is not judged of which nothing was found in a run that did not come to its end.
_INTERRUPTED = "interrupted: what was run so far has passed"
_BROKE = "an internal error: what was run has passed"
Record = dict[str, Any]  # JSON

_PLACES = {name: index for index, name in enumerate(("contact", *CATALOGUE))}
#: Findings that name a candidate's verdict by themselves.
_VERDICTS = {Kind.DOES_NOT_BUILD: "does-not-build", Kind.TIMEOUT: "timeout", Kind.NOT_RUN: "not-judged"}


def subject_record(subject: Subject) -> Record:
    """Who was judged, and what it supports; ``instead`` is a class that was taken for the one asked for."""
    taken = subject.runner.taken
    return {
        "path": str(subject.path),
        "name": subject.path.stem,
        "sha256": sha256(subject.path),
        "shipped": subject.shipped,
        "target": subject.target,
        "supported": sorted(subject.supported),
        "unsupported": dict(subject.unsupported),
        "pinned": subject.runner.memory.unshared,
        "instead": "" if taken == subject.runner.model else taken,
        "broken": None if subject.broken is None else finding_record(subject.broken, subject, None),
    }


def property_record(subject: Subject, examination: Examination, run: tuple[str, ...] = ()) -> Record:
    """What came out of one property; ``run`` are the options of a whole run that draws the same cases again."""
    prop = examination.property
    line = None if examination.case is None else f"{prop.name}:{examination.case}"
    return {
        "name": prop.name,
        "promise": prop.promise,
        "outcome": examination.outcome,
        "reason": examination.reason,
        "examples": examination.examples,
        "unsupported": examination.unsupported,
        "seconds": round(examination.seconds, 3),
        "worst": {
            name: {**_metric(worst.metric), "case": f"{prop.name}:{worst.case}"}
            for name, worst in examination.worst.items()
        },
        "notes": dict(examination.notes),
        "not_run": dict(examination.not_run),
        "drawn": {
            kind: {name: count for name in names if (count := examination.drawn[kind, name])}
            for kind, names in CLASSES.items()
        },
        "findings": [finding_record(finding, subject, line, run) for finding in examination.findings],
    }


def finding_record(finding: Finding, subject: Subject, line: str | None, run: tuple[str, ...] = ()) -> Record:
    """One finding, with the command that shows it again: the case alone, or all that came before it, too."""
    whole = line is not None and finding.kind in (Kind.STATE_LEAK, Kind.NONDETERMINISTIC)
    return {
        "kind": str(finding.kind),
        "text": finding.text,
        "details": list(finding.details),
        "case": line,
        "replay": replay_command(subject, None, run) if whole else replay_command(subject, line),
    }


def whole_run(options: Options, seed: int) -> tuple[str, ...]:
    """The options with which all cases of a run are drawn again."""
    usual = options.profile.name == DEFAULT
    return (*(() if usual else (f"--profile={options.profile.name}",)), f"--hypothesis-seed={seed}")


def replay_command(subject: Subject, line: str | None, run: tuple[str, ...] = ()) -> str:
    """A command that works in a fresh shell, from any folder: of one case, or of a whole run with these options."""
    words = []
    if not subject.shipped:
        words.append(f"--candidate={subject.path}")
    words.append(f"--target={subject.target}")
    extra = sorted(subject.required - {"fp32"}) if not subject.shipped else []
    words += [f"--require={','.join(extra)}"] if extra else []
    words += _given(subject)
    words += [f"--case={line}"] if line else list(run)
    return " ".join([command_of_verify(ROOT, _named_python()), *map(shlex.quote, words)])


def _named_python() -> str | None:
    """The Python that it has to name: `ci/verify` tells; without it, that of a venv, since torch is found there."""
    if STARTED_BY in os.environ:
        return os.environ.get(NAMED_PYTHON)
    return sys.executable if sys.prefix != sys.base_prefix else None


def _given(subject: Subject) -> list[str]:
    """The options of the run, where they are not the usual ones, without which the replay would be another call."""
    usual, limits, cache = Limits(), subject.limits, subject.runner.cache
    fresh = {name: value for name, value in os.environ.items() if name != VARIABLE}
    words = [] if cache == cache_folder(fresh, Path.home(), sys.platform) else [f"--cache-dir={cache}"]
    words += [f"--call-timeout={limits.call:g}"] if limits.call != usual.call else []
    words += [f"--build-timeout={limits.build:g}"] if limits.build != usual.build else []
    return words


@dataclass
class Gathered:
    """What a run gathers for its report.

    Attributes:
        records: pairs of subject and property record, as tests sent them.
        tests: counts by outcome.
        not_run: pairs of what and why.
        internal_errors: texts.
        interrupted: whether one of them is that somebody has ended the run.
    """

    records: list[tuple[Record, Record]] = field(default_factory=list)
    tests: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("passed", "failed", "skipped", "deselected", "errors"), 0)
    )
    not_run: list[tuple[str, str]] = field(default_factory=list)
    internal_errors: list[str] = field(default_factory=list)
    interrupted: bool = False


def assemble(gathered: Gathered, options: Options, machine: Machine, seed: int) -> Record:
    """The report of a run."""
    candidates: dict[str, Record] = {}
    broken: dict[tuple[str, str], str] = {}
    for subject, prop in gathered.records:
        entry = candidates.setdefault(
            subject["path"], {key: subject[key] for key in ("path", "name", "sha256", "shipped")} | {"targets": {}}
        )
        target = entry["targets"].setdefault(
            subject["target"],
            {"supported": [], "unsupported": {}, "pinned": "", "instead": "", "properties": []},
        )
        if subject["supported"] or subject["broken"]:
            target |= {key: subject[key] for key in ("supported", "unsupported", "pinned", "instead")}
        if subject["broken"]:
            broken[subject["path"], subject["target"]] = subject["broken"]["kind"]
        target["properties"].append(prop)
    for entry in candidates.values():
        for name, target in entry["targets"].items():
            target["properties"].sort(key=place)
            _judge_target(target, options.case, broken.get((entry["path"], name), ""))
            done = gathered.interrupted and {"contact", *CATALOGUE} <= {prop["name"] for prop in target["properties"]}
            if gathered.internal_errors and target["verdict"] == "accepted" and not done:
                reason = _INTERRUPTED if gathered.interrupted else _BROKE
                target |= {"verdict": "not-judged", "status": "not-judged", "reason": reason}
        entry["verdict"] = _verdict([target["verdict"] for target in entry["targets"].values()])
    return {
        "schema": SCHEMA,
        "tool": tool.record(),
        "environment": {
            "python": machine.python,
            "torch": machine.torch,
            "processor": machine.processor,
            "gpu": machine.gpu or None,
            "driver": machine.driver or None,
            "no_gpu": machine.no_gpu or None,
        },
        "run": {
            "profile": options.profile.name,
            "seed": seed,
            "targets": list(options.targets),
            "isolated": options.isolated,
            "partial": _partial(candidates, options),
            "usage_error": None,
            "internal_errors": gathered.internal_errors,
        },
        "candidates": list(candidates.values()),
        "tests": gathered.tests,
        "not_run": [{"what": what, "why": why} for what, why in gathered.not_run],
    }


def place(prop: Record) -> int:
    """Where a property stands: contact first, then as in the catalogue; the first finding is the most telling one."""
    return _PLACES.get(prop["name"], len(_PLACES))


def _partial(candidates: dict[str, Record], options: Options) -> bool:
    """Whether some property was not even asked for (``--case``, ``-k``)."""
    names = {"contact", *CATALOGUE}
    ran = [
        {prop["name"] for prop in target["properties"]}
        for each in candidates.values()
        for target in each["targets"].values()
    ]
    return options.case is not None or any(names - each for each in ran)


def usage_error_report(text: str) -> Record:
    """The report of a run that did not start."""
    return {
        "schema": SCHEMA,
        "tool": tool.record(),
        "environment": {},
        "run": {"usage_error": text, "internal_errors": []},
        "candidates": [],
        "tests": {},
        "not_run": [],
    }


def first_finding(entry: Record) -> Record | None:
    """The first finding of a candidate's entry, contact first."""
    for target in entry["targets"].values():
        for prop in target["properties"]:
            if prop["outcome"] == "failed" and prop["findings"]:
                finding: Record = prop["findings"][0]
                return finding
    return None


def _judge_target(target: Record, asked: tuple[Property, Case] | None, broken: str) -> None:
    """Set a target's verdict.

    Args:
        target: with its properties.
        asked: the one case that was asked for, if there is one: that the candidate answers is no verdict on it.
        broken: the kind of what keeps it from being judged at all; `contact` says so, too, but may have been left out.
    """
    properties = target["properties"]
    failed = [prop for prop in properties if prop["outcome"] == "failed"]
    judged = [prop for prop in properties if prop["outcome"] in ("passed", "failed", "reported")]
    reasons = [prop["reason"] for prop in properties if prop["reason"]]
    kinds = [finding["kind"] for prop in failed for finding in prop["findings"]] or [broken]
    if asked is not None and not failed:
        replayed = [prop for prop in judged if prop["name"] == asked[0].name]
        reasons += [why for prop in replayed for why in prop["not_run"].values()]
        judged = [prop for prop in replayed if prop["examples"] or prop["unsupported"]]
    if failed or (broken and broken != Kind.NOT_RUN):
        named = [verdict for kind, verdict in _VERDICTS.items() if kinds[0] == kind and kind != Kind.NOT_RUN]
        target["verdict"] = named[0] if named else "rejected"
    else:
        target["verdict"] = "accepted" if judged else "not-judged"
    target["status"] = "not-judged" if target["verdict"] == "not-judged" else "judged"
    target["reason"] = reasons[0] if reasons and not judged else None


def _verdict(verdicts: list[str]) -> str:
    for bad in ("does-not-build", "timeout", "rejected"):
        if bad in verdicts:
            return bad
    return "accepted" if "accepted" in verdicts else "not-judged"


def _metric(metric: Metric) -> Record:
    return {"value": metric.value if math.isfinite(metric.value) else None, "bound": metric.bound}


@cache
def sha256(path: Path) -> str:
    """Of a file's content when it was first asked for, in hex: a candidate may change or remove its file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_at_first(path: Path) -> bool:
    """Whether a file still is the one whose `sha256` stands in the report."""
    try:
        return sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return False
