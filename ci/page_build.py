"""Puts a page together from what was read: which sections, tables and drawings, and the words around them.

Promise: pure functions. Verdicts are those of the files, never made here; what was not there is named at the end.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ci import page_gate, wording
from ci.gate_record import Record
from ci.page_content import Block, Cell, Code, Figure, Fold, Gallery, Items, Page, Section, Table, Text, Verdict
from ci.page_facts import PEERS, Kills, Missing, Run, Timing, devices, history
from ci.report import AGAINST, OUT, Candidate, Property, Report, Target, exit_code, not_examined, not_run

# How the words of a report are meant.
TONES = {
    "accepted": "good",
    "passed": "good",
    "not-judged": "none",
    "not-examined": "none",
    "skipped": "none",
    "told": "warn",
    "failed": "bad",
    **dict.fromkeys(AGAINST, "bad"),
}
# Runs that a table of the history shows side by side: what a screen holds.
SHOWN_RUNS = 8
# Lines of a table of the kill matrix that are shown unasked: its counts, not its mutants.
SHOWN_LINES = 8
# Findings that are shown in full, each once; a kernel that is wrong in many ways has many.
SHOWN_FINDINGS = 12


class Drawer(Protocol):
    """What draws: `ci.page_plots`, behind a name so that nothing here needs matplotlib."""

    def roofline(self, points: Sequence[tuple[str, Sequence[Timing], str]], title: str, words: str) -> str:
        """Draw fractions of a copy against row lengths: series by name, timings, and peer ("" for the candidate)."""

    def history(self, values: Sequence[float], title: str, words: str) -> str:
        """Draw fractions of a copy, run after run."""


@dataclass
class Facts:
    """All that was read.

    Attributes:
        reports: Of `ci/verify`.
        gates: Records of `ci/gate`.
        runs: Stored runs, oldest first.
        kills: The kill matrix.
        missing: What was not there.
    """

    reports: list[Report] = field(default_factory=list)
    gates: list[Record] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    kills: list[Kills] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)


def build(facts: Facts, origin: str, drawer: Drawer | None, undrawn: str) -> Page:
    """The page.

    Args:
        facts: What was read.
        origin: A line on where and when.
        drawer: Draws; None where nothing can.
        undrawn: Why nothing can, and what to do; "" where there is nothing to draw.
    """
    page = Page("kernelproof: report", origin, [*map(_headline, facts.reports), *map(page_gate.headline, facts.gates)])
    page.sections += map(page_gate.section, facts.gates)
    page.sections += map(correctness, facts.reports)
    for device in devices(facts.runs):
        page.sections += speed(facts.runs, device, drawer)
    for kills in facts.kills:
        page.sections.append(_kills(kills))
    missing = [*facts.missing]
    if undrawn:
        missing.append(Missing("the plots", undrawn))
    if missing:
        items = tuple(f"{each.what}: {each.why}" for each in missing)
        page.sections.append(Section("Not shown", (Items(items),)))
    return page


def verdict(word: str) -> Verdict:
    """A word of a report with its tone."""
    return Verdict(word, TONES.get(word, "warn"))


def _headline(found: Report) -> Text:
    """The verdict of a report in one line."""
    if found.usage_error is not None:
        return Text(f"ci/verify was called wrongly: {found.usage_error}", Verdict("not run", "warn"))
    code = exit_code(found)
    words = {0: "accepted", 1: "rejected", 69: "not-judged"}.get(code, "internal error")
    named: dict[str, list[str]] = {}
    for each in found.candidates:
        named.setdefault(each.verdict, []).append(each.name)
    if len(named) > 1:
        names = "; ".join(f"{len(those)} {word}: {', '.join(those)}" for word, those in named.items())
    else:
        names = ", ".join(each.name for each in found.candidates) or "no candidate"
    judged = {target.name for each in found.candidates for target in each.targets if target.judged}
    where = f" on {' and '.join(sorted(judged))}" if judged else ""
    part = ", in the part that was run" if found.partial else ""
    return Text(f"{names}{where}{part} (exit code {code})", verdict(words))


def correctness(found: Report) -> Section:
    """The section of a report: verdicts, findings, what did not run."""
    if found.usage_error is not None:
        return Section("Correctness", (Text(f"Called wrongly: {found.usage_error}"),))
    where = f"torch {found.torch}, {found.gpu or 'no GPU'}, profile {found.profile}, seed {found.seed}"
    blocks: list[Block] = [Text(where)]
    blocks += [Text(error, Verdict("internal error", "bad")) for error in found.internal_errors]
    if not found.isolated:
        blocks.append(Text("the candidates were not isolated, so no verdict counts", Verdict("internal error", "bad")))
    if found.partial:
        blocks.append(Text("Only a part of the properties was run: this is no verdict on a candidate that passes."))
    judged = [(candidate, target) for candidate in found.candidates for target in candidate.targets]
    rows = tuple(_target_row(candidate, target) for candidate, target in judged)
    head = ("candidate", "target", "verdict", "properties", "examples", "first finding, or why not")
    blocks.append(Table("Verdict of each candidate on each target", head, rows, frozenset({3, 4})))
    blocks += _findings(judged)
    blocks += [_properties(candidate, target) for candidate, target in judged if target.properties]
    tests = found.tests
    counts = f"{tests.passed} passed, {tests.failed} failed, {tests.errors} errors, {tests.skipped} skipped"
    blocks.append(Text(f"Tests: {counts}."))
    left = [*wording.not_run(not_run(found)), *wording.not_examined(not_examined(found))]
    if left:
        blocks.append(Fold("What was not run, and why", (Items(tuple(left)),)))
    names = ", ".join(dict.fromkeys(candidate.name for candidate in found.candidates))
    return Section(f"Correctness of {names}" if names else "Correctness", tuple(blocks))


def _target_row(candidate: Candidate, target: Target) -> tuple[Cell, ...]:
    failed = _failed(target)
    first = f"{failed[0].findings[0].kind}: {failed[0].findings[0].text}" if failed else target.reason
    return (
        f"{candidate.name}{' (shipped)' if candidate.shipped else ''}",
        target.name,
        verdict(target.verdict),
        str(sum(each.outcome not in OUT for each in target.properties)),
        str(sum(each.examples for each in target.properties)),
        first,
    )


def _failed(target: Target) -> list[Property]:
    return [each for each in target.properties if each.outcome == "failed" and each.findings]


def _findings(judged: Iterable[tuple[Candidate, Target]]) -> list[Block]:
    """What was found, each finding once, however many properties came upon it; and how to see it again."""
    found: dict[tuple[str, str, str], list[Property]] = {}
    for candidate, target in judged:
        for each in _failed(target):
            first = each.findings[0]
            key = (f"{candidate.name} on {target.name}", first.kind, first.text)
            found.setdefault(key, []).append(each)
    shown = list(found.items())[:SHOWN_FINDINGS]
    replays = [properties[0].findings[0].replay for _, properties in shown]
    blocks: list[Block] = [Text(_where_to_replay(replays))] if any(map(_replayable, replays)) else []
    for ((who, kind, text), properties), replay in zip(shown, replays, strict=True):
        others = len(properties) - 1
        more = "" if not others else f" and {others} more {'property' if others == 1 else 'properties'}"
        blocks.append(Text(f"{who}, {properties[0].name}{more}: {kind}: {text}", verdict("failed")))
        if _replayable(replay):
            # The cache folder is the maker's, and every machine has one of its own.
            words = [word for word in replay if not word.startswith("--cache-dir=")]
            blocks.append(Code(shlex.join(["ci/verify", *words])))
    if len(found) > len(shown):
        blocks.append(Text(f"{len(found) - len(shown)} more findings; the tables below name them."))
    return blocks


def _replayable(words: Sequence[str]) -> bool:
    return any(word.startswith("--case=") for word in words)


def _where_to_replay(shown: Iterable[Sequence[str]]) -> str:
    """From where the commands run: the reader's machine is another than the one that judged."""
    text = "Each command below shows its finding again: run it at the root of a checkout of kernelproof."
    if any(word.startswith("--candidate=") for words in shown for word in words):
        text += " The path behind --candidate= is that of the machine that judged, put yours in its place."
    return text


def _properties(candidate: Candidate, target: Target) -> Fold:
    rows = tuple(
        (each.name, verdict(wording.outcome(each.outcome)), str(each.examples), _found(each))
        for each in target.properties
    )
    title = f"Every property of {candidate.name} on {target.name}"
    table = Table(title, ("property", "outcome", "examples", "found"), rows, frozenset({2}))
    blocks: list[Block] = [table]
    if target.instead:
        blocks.append(Text(f"{wording.judged_instead(target.instead)}."))
    if target.unsupported:
        blocks += [Text("Not supported:"), Items(tuple(f"{what}: {why}" for what, why in target.unsupported))]
    return Fold(title, tuple(blocks))


def _found(prop: Property) -> str:
    """What was found, and noticed, and why nothing was."""
    notes = (f"{note} ({wording.many(count, 'case')})" for note, count in prop.notes)
    return "; ".join([*(finding.text for finding in prop.findings), *notes, *filter(None, [prop.reason])])


def speed(runs: Sequence[Run], device: str, drawer: Drawer | None) -> list[Section]:
    """The sections of one device: the newest run as drawing and table, and what became of each case over the runs."""
    newest = [run for run in runs if any(timing.device == device for timing in run.timings)][-1]
    mine = [timing for timing in newest.timings if timing.device == device]
    blocks: list[Block] = [Text(f"Run {_run_name(newest)}, {newest.when[:16].replace('T', ' ')}.")]
    for candidate in dict.fromkeys(timing.candidate for timing in mine):
        timings = [timing for timing in mine if timing.candidate == candidate]
        if drawer is not None:
            title = f"{candidate} on {device}"
            words = _roofline_words(timings)
            blocks.append(Figure(title, words, drawer.roofline(_series(candidate, timings), title, words)))
        blocks.append(_speed_table(candidate, timings))
    return [Section(f"Speed on {device}", tuple(blocks)), *_history(runs, device, drawer)]


def _series(candidate: str, timings: Sequence[Timing]) -> list[tuple[str, Sequence[Timing], str]]:
    dtypes = dict.fromkeys(timing.dtype for timing in timings)
    ours = [(f"{candidate}, {dtype}", [timing for timing in timings if timing.dtype == dtype], "") for dtype in dtypes]
    peers = [(peer, [timing for timing in timings if peer in dict(timing.peers)], peer) for peer in PEERS]
    return [*ours, *((name, found, peer) for name, found, peer in peers if found)]


def _roofline_words(timings: Sequence[Timing]) -> str:
    least = min(timings, key=lambda timing: timing.of_copy)
    most = max(timings, key=lambda timing: timing.of_copy)
    text = (
        f"Speed as a fraction of a copy of the same bytes, against the length of a row; the dashed line is the copy. "
        f"{len(timings)} cases, from {least.of_copy:.2f} ({least.case}) to {most.of_copy:.2f} ({most.case})."
    )
    return f"{text} The table below has every figure."


def _speed_table(candidate: str, timings: Sequence[Timing]) -> Table:
    peers = [peer for peer in PEERS if any(peer in dict(timing.peers) for timing in timings)]
    rows = tuple(
        (
            timing.case,
            _seconds(timing.seconds),
            f"{timing.gb_per_s:.1f}",
            f"{timing.of_copy:.3f}",
            *(f"{dict(timing.peers)[peer]:.3f}" if peer in dict(timing.peers) else "" for peer in peers),
        )
        for timing in timings
    )
    head = ("case", "time", "GB/s", "of copy", *(f"{peer}, of copy" for peer in peers))
    caption = f"{candidate}: median of a call; 'of copy' is time of a copy / time, both of this run"
    return Table(caption, head, rows, frozenset(range(1, len(head))))


def _history(runs: Sequence[Run], device: str, drawer: Drawer | None) -> list[Section]:
    followed = {key: seen for key, seen in history(runs, device).items() if len(seen) > 1}
    title = f"History on {device}"
    if not followed:
        return [Section(title, (Text("No case was timed in two stored runs on this device."),), level=2)]
    blocks: list[Block] = [Text("Fractions of a copy of the same run: what slows a whole run down meets both.")]
    if drawer is not None:
        figures = []
        for (candidate, case), seen in followed.items():
            values = [timing.of_copy for _, timing in seen]
            name = f"{candidate}: {case}"
            words = f"{values[0]:.3f} at first, {values[-1]:.3f} in the newest of {len(values)} runs."
            figures.append(Figure(name, words, drawer.history(values, f"{name} on {device}", words)))
        blocks.append(Gallery(tuple(figures)))
    shown = [run for run in runs if any(timing.device == device for timing in run.timings)][-SHOWN_RUNS:]
    rows = tuple(
        (f"{candidate}: {case}", *(_of_copy(seen, run) for run in shown))
        for (candidate, case), seen in followed.items()
    )
    head = ("case", *map(_run_name, shown))
    caption = f"Fraction of a copy in the last {len(shown)} runs, oldest first"
    return [
        Section(
            title,
            (*blocks, Fold(caption, (Table(caption, head, rows, frozenset(range(1, len(head)))),))),
            level=2,
        )
    ]


def _of_copy(seen: Sequence[tuple[Run, Timing]], run: Run) -> str:
    return next((f"{timing.of_copy:.3f}" for each, timing in seen if each is run), "")


def _run_name(run: Run) -> str:
    return f"{run.name} ({run.commit[:8]})" if run.commit else run.name


def _kills(kills: Kills) -> Section:
    blocks: list[Block] = [Text(note) for note in kills.notes[:SHOWN_FINDINGS]]
    for title, (head, *rows) in kills.tables:
        wide = tuple((*row[: len(head)], *[""] * (len(head) - len(row))) for row in rows)
        table = Table(title, head, tuple(tuple(map(_kill_cell, row)) for row in wide))
        blocks.append(table if len(rows) <= SHOWN_LINES else Fold(f"{title} ({len(rows)} lines)", (table,)))
    return Section("Kill matrix", tuple(blocks))


def _kill_cell(text: str) -> Cell:
    return Verdict(text, "bad") if text == "survives" else text


def _seconds(value: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"
