"""Words for a person: the run header, the text of a failure, and the summary. Made from records alone."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from ci import wording

from . import records
from .cases import DTYPE_FEATURES
from .coverage import CLASSES
from .options import Options
from .records import Record
from .targets import Machine

#: What stands in a table where there is no figure.
_NONE = "-"


def header(options: Options, machine: Machine, seed: int, not_run: list[tuple[str, str]]) -> list[str]:
    """The lines at the head of a run."""
    gpu = f"{machine.gpu}, driver {machine.driver}" if machine.gpu else f"no GPU ({machine.no_gpu})"
    lines = [f"kernelproof: torch {machine.torch}, {gpu}, {machine.processor}"]
    lines += [f"candidate: {path} (SHA-256 of this file {records.sha256(path)[:12]})" for path in options.candidates]
    skipped = {what for what, _ in not_run}
    targets = ", ".join(target for target in options.targets if target not in skipped) or "none"
    lines.append(f"targets: {targets}; profile {options.profile.name}, seed {seed} (--hypothesis-seed={seed})")
    if not options.isolated:
        lines.append("NOT ISOLATED: the candidate runs inside pytest; no verdict of this run counts")
    return lines


def failure(who: Record, what: Record, told: set[tuple[str, str]]) -> str:
    """The text of a failed property: findings, the minimal case, the worst elements, the replay command.

    A finding in ``told`` (kind and text) has been shown in full with an earlier property of the candidate: the worst
    elements are left out. What is shown is added.
    """
    new = {(finding["kind"], finding["text"]) for finding in what["findings"]} - told
    told |= new
    lines = [f"{who['name']} on {who['target']}: {what['promise']}", ""]
    lines += [f"{finding['kind']}: {finding['text']}" for finding in what["findings"]]
    case = what["findings"][0]["case"] if what["findings"] else None
    if case:
        lines += ["", f"smallest case   {case}"]
    details = [line for finding in what["findings"] for line in finding["details"]]
    lines += [f"    {line}" for line in details[:24]] if new else []
    if what["findings"]:
        lines += ["", f"replay          {what['findings'][0]['replay']}"]
    return "\n".join(lines)


def failures(found: list[tuple[Record, Record]]) -> list[tuple[str, str]]:
    """A title and the text of every finding that is not another one's again: in full once, with who else has the same.

    Args:
        found: pairs of subject and property record, in any order. Which property stands for those with the same
            finding, and which comes first, is the catalogue's order: what is plain before what is special.
    """
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[tuple[Record, Record]]] = {}
    for who, what in sorted(found, key=lambda pair: records.place(pair[1])):
        if what["outcome"] == "failed":
            same = tuple((finding["kind"], wording.cause(finding["text"])) for finding in what["findings"])
            groups.setdefault((who["path"], who["target"], same), []).append((who, what))
    seats = list(dict.fromkeys((who["path"], who["target"]) for who, _ in found))
    blocks = []
    for (_, target, _), ((who, what), *others) in sorted(groups.items(), key=lambda each: seats.index(each[0][:2])):
        block = failure(who, what, set())
        if others:
            block += f"\nthe same in: {', '.join(other['name'] for _, other in others)}"
        blocks.append((f"{what['name']} of {who['name']} on {target}", block))
    return blocks


def text(report: Record, width: int) -> str:
    """The summary at the end of a run."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 100), highlight=False, soft_wrap=False)
    for entry in report["candidates"]:
        for target, facts in entry["targets"].items():
            if any(map(_looked_at, facts["properties"])):
                console.print(_table(entry, target, facts))
            _by_dtype(console, facts)
            _drawn(console, facts)
            _remarks(console, facts)
    for entry in report["candidates"]:
        finding = records.first_finding(entry)
        if finding:
            kind = "" if finding["kind"] == entry["verdict"] else f"{finding['kind']}: "
            because = f": {kind}{finding['text']}"
        else:
            reasons = dict.fromkeys(facts["reason"] for facts in entry["targets"].values() if facts["reason"])
            because = f": {'; '.join(reasons)}" if entry["verdict"] != "accepted" and reasons else ""
        part = " in what was run" if report["run"]["partial"] and entry["verdict"] == "accepted" else ""
        verdict = f"{entry['verdict']}{part}"
        if not report["run"]["isolated"]:
            verdict += " (not isolated: does not count)"
        console.print(f"{entry['name']}: {verdict}{because}", markup=False, soft_wrap=True)
    kinds = Counter(
        kind
        for entry in report["candidates"]
        for facts in entry["targets"].values()
        for prop in facts["properties"]
        if prop["outcome"] == "failed"
        for kind in dict.fromkeys(finding["kind"] for finding in prop["findings"])
    )
    if kinds:
        counts = ", ".join(f"{kind} in {wording.many(count, 'property')}" for kind, count in kinds.most_common())
        console.print(f"findings: {counts}", markup=False, soft_wrap=True)
    out_of = list(_not_examined(report))
    told = {wording.place(prop, name, target) for prop, name, target, _ in out_of}
    left = [(each["what"], each["why"]) for each in report["not_run"] if each["what"] not in told]
    for line in (*wording.not_run(left), *wording.not_examined(out_of)):
        console.print(line, markup=False, soft_wrap=True)
    if report["tests"]["deselected"]:
        console.print(f"deselected: {report['tests']['deselected']} tests")
    return out.getvalue()


def _table(entry: Record, target: str, facts: Record) -> Table:
    table = Table(title=f"{entry['name']} on {target}", title_justify="left", box=None, pad_edge=False)
    for name in ("property", "outcome", "examples", "seconds", "scaling / u", "mean / limit", "worst at"):
        table.add_column(
            name, justify="right" if name in ("examples", "seconds") else "left", no_wrap=name != "worst at"
        )
    for prop in filter(_looked_at, facts["properties"]):
        mean, scaling = (_worst([prop], name) for name in ("mean error / limit", "scaling error / u"))
        place = (mean or scaling or {}).get("case", "")
        table.add_row(
            prop["name"],
            wording.outcome(prop["outcome"]),
            str(prop["examples"]) + (f" (-{prop['unsupported']})" if prop["unsupported"] else ""),
            f"{prop['seconds']:.1f}",
            _number(scaling),
            _number(mean),
            _in_short(place.partition(":")[2]),
        )
    return table


def _in_short(line: str) -> str:
    """Of a case what fits into a column: shape, type and an unusual layout. The report file has all of it."""
    parts = dict(part.partition("=")[::2] for part in line.split(","))
    return " ".join(parts[name] for name in ("shape", "dtype", "layout") if name in parts)


def _worst(properties: list[Record], name: str, dtype: str = "") -> Record | None:
    """The worst of a metric over properties, for one dtype or all; None where it was never taken."""
    found = [
        metric
        for prop in properties
        for label, metric in prop["worst"].items()
        if label.startswith(f"{name}, ") and label.endswith(dtype)
    ]
    return max(found, key=lambda metric: float("inf") if metric["value"] is None else metric["value"], default=None)


def _by_dtype(console: Console, facts: Record) -> None:
    """The worst errors of each dtype over all properties but those whose failures are only told."""
    counted = [prop for prop in facts["properties"] if prop["outcome"] != "reported"]
    for dtype in DTYPE_FEATURES.values():
        names = ("scaling error / u", "mean error / u", "mean error / limit")
        worst = [_worst(counted, name, dtype) for name in names]
        if any(worst):
            words = ", ".join(f"{name} {_number(metric)}" for name, metric in zip(names, worst, strict=True))
            console.print(f"  worst in {dtype}: {words}", markup=False, soft_wrap=True)


def _drawn(console: Console, facts: Record) -> None:
    """How many of the cases that were judged are of each class; of a single case, as in a replay, its line says it."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in CLASSES}
    for prop in facts["properties"]:
        for kind, drawn in prop["drawn"].items():
            counts[kind].update(drawn)
    if counts["type"].total() > 1:
        for kind, names in CLASSES.items():
            words = ", ".join(f"{name} {counts[kind][name]}" for name in names)
            console.print(f"  judged by {kind}: {words}", markup=False, soft_wrap=True)


def _number(metric: Record | None) -> str:
    if metric is None:
        return _NONE
    return "inf" if metric["value"] is None else f"{metric['value']:.3g}"


def _remarks(console: Console, facts: Record) -> None:
    """What is not supported, where inputs lay, and what was noticed and rejects nobody."""
    if facts["pinned"]:
        console.print(f"  inputs lay in pinned memory of the host: {facts['pinned']}", markup=False, soft_wrap=True)
    if facts["instead"]:
        console.print(f"  {wording.judged_instead(facts['instead'])}", markup=False, soft_wrap=True)
    properties = facts["properties"]
    told = [
        (prop["name"], *(prop["findings"][0][name] or "" for name in ("text", "case", "replay")))
        for prop in properties
        if prop["outcome"] == "reported"
    ]
    against = (prop["findings"][0]["text"] for prop in properties if prop["outcome"] == "failed")
    remarks = wording.not_kept(told, next(against, ""))
    remarks += wording.not_supported(facts["unsupported"].items())
    remarks += wording.noticed(note for prop in properties for note in prop["notes"].items())
    for remark in remarks:
        console.print(f"  {remark}", markup=False, soft_wrap=True)


def _looked_at(prop: Record) -> bool:
    """Whether the table has a line for it; why it has none is said below."""
    return bool(prop["outcome"] != "not-examined")


def _not_examined(report: Record) -> Iterator[tuple[str, str, str, str]]:
    """Property, candidate, target and reason of what was not examined, where others of the candidate were."""
    for entry in report["candidates"]:
        for target, facts in entry["targets"].items():
            if any(_looked_at(prop) and prop["name"] != "contact" for prop in facts["properties"]):
                for prop in facts["properties"]:
                    if not _looked_at(prop):
                        yield prop["name"], entry["name"], target, prop["reason"]
