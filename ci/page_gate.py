"""Puts the record of a gate run into sections of a page.

Promise: pure functions; the verdicts are the record's own. The worst cases come first, those left out last.
"""

from collections.abc import Sequence

from ci import gate_record
from ci.gate_record import DESELECTED, REASONS, STORED, VERDICTS, WORST_FIRST, Case, Contestant, Estimate, Record
from ci.page_content import Block, Fold, Items, Section, Table, Text, Verdict

# How a verdict is meant, and what it says to somebody who meets it for the first time.
TONES = {
    gate_record.FASTER: "good",
    gate_record.SAME: "good",
    gate_record.SLOWER: "bad",
    gate_record.UNDECIDED: "warn",
    gate_record.NOT_MEASURED: "warn",
}
MEANINGS = {
    gate_record.FASTER: "the ratio is below 1 by more than the least effect that counts, and its interval excludes 1",
    gate_record.SAME: "the whole interval lies within the least effect that counts, on both sides of 1",
    gate_record.SLOWER: "the ratio is above 1 by more than the least effect that counts, and its interval excludes 1",
    gate_record.UNDECIDED: "neither, in the rounds that were allowed: the machine is too restless, or too slow",
    gate_record.NOT_MEASURED: "there are no figures that count; the reason stands beside it",
}


def verdict(word: str) -> Verdict:
    """A word of the record with its tone."""
    return Verdict(word, TONES[word])


def headline(record: Record) -> Text:
    """The gate's verdict in one line."""
    if record.internal_errors:
        return Text(f"the gate itself (exit code {record.exit_code})", Verdict("internal error", "bad"))
    found = [case.verdict for case in record.cases]
    counts = ", ".join(f"{found.count(word)} {word}" for word in WORST_FIRST if word in found)
    where = record.machine.gpu if record.target == "cuda" and record.machine.gpu else record.target
    who = f"{record.candidate.label} against {record.base.label} on {where}"
    return Text(f"{who}: {counts or 'no case'} (exit code {record.exit_code})", verdict(record.verdict))


def section(record: Record) -> Section:
    """What the gate found, case by case."""
    blocks: list[Block] = [Text(error, Verdict("internal error", "bad")) for error in record.internal_errors]
    if record.same_code:
        blocks.append(Text("Candidate and base are the same code: an A/A run.", Verdict("same sources", "warn")))
    blocks.append(Text(_how(record)))
    if record.machine.throttled:
        reasons = ", ".join(record.machine.throttled)
        blocks.append(Text(f"The clocks were held down while measuring: {reasons}.", Verdict("throttled", "warn")))
    cases = sorted(record.cases, key=lambda case: (case.reason == DESELECTED, WORST_FIRST.index(case.verdict)))
    head = ("case", "verdict", "time / base's", "interval", "of copy", "base, of copy", "rounds", "why")
    sure = f", with intervals of {100 * record.confidence:.4g} % confidence" if record.confidence else ""
    caption = f"Time of the candidate / time of the base{sure}"
    blocks.append(Table(caption, head, tuple(map(_row, cases)), frozenset({2, 3, 4, 5, 6})))
    met = [word for word in VERDICTS if any(case.verdict == word for case in cases)]
    blocks.append(Items(tuple(f"{word}: {MEANINGS[word]}" for word in met)))
    if record.notes:
        blocks += [Text("Remarks:"), Items(record.notes)]
    blocks.append(Fold("Where and what", (Items(_circumstances(record)),)))
    return Section(f"Gate: {record.candidate.label} against {record.base.label}", tuple(blocks))


def _how(record: Record) -> str:
    if not record.confidence:
        return "Nothing was measured."
    how = "against a stored run, by way of a copy in each" if record.comparison == STORED else "in turns in one run"
    return (
        f"Timed {how}, in {record.seconds:.0f} s. An effect counts from {100 * record.minimum:.3g} %; with "
        f"{100 * record.gate_confidence:.4g} % confidence identical code is called slower in none of its cases."
    )


def _row(case: Case) -> tuple[str | Verdict, ...]:
    words = "; ".join(filter(None, [REASONS.get(case.reason, ""), case.text]))
    return (
        case.name,
        verdict(case.verdict),
        "" if case.ratio is None else f"{case.ratio.value:.3f}",
        "" if case.ratio is None else f"{case.ratio.low:.3f} to {case.ratio.high:.3f}",
        _value(case.candidate_of_copy),
        _value(case.base_of_copy),
        str(case.rounds) if case.rounds else "",
        words,
    )


def _value(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f}"


def _circumstances(record: Record) -> tuple[str, ...]:
    machine = record.machine
    clocks = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.clocks.items())
    found: Sequence[tuple[str, str]] = (
        ("candidate", _contestant(record.candidate)),
        ("base", _contestant(record.base)),
        ("began", record.date),
        ("GPU", ", driver ".join(filter(None, [machine.gpu, machine.driver]))),
        ("processor", machine.processor),
        ("torch", ", CUDA ".join(filter(None, [machine.torch, machine.cuda]))),
        ("Python", machine.python),
        ("kernelproof", machine.tool),
        ("clocks", clocks),
    )
    return tuple(f"{name}: {text}" for name, text in found if text)


def _contestant(contestant: Contestant) -> str:
    commit = f"commit {contestant.commit[:12]}{'+' if contestant.commit.endswith('+') else ''}"
    digest = f"SHA-256 of all its sources {contestant.digest[:12]}" if contestant.digest else ""
    parts = [contestant.label, contestant.path, commit if contestant.commit else "", digest]
    return ", ".join(filter(None, parts))
