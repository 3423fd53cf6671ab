"""What the suite's summary, `ci/verify` and the page say in the same words: one thing has one name and is told once.

Promise: pure functions over plain text and counts; what is alike shares a line, and nothing is left out.
"""

from collections.abc import Iterable

# How the reason begins of a file in a candidate's place that nobody can read.
UNREAD = "cannot be read"
# Where the words of a finding end and the larger case begins that they were made for.
_SEEN = " (seen at "
# Names that a line lists; of more it gives the number.
_LISTED = 12


def outcome(word: str) -> str:
    """What a person reads for an outcome of a property: the report's ``reported`` is what is told."""
    return "told" if word == "reported" else word


def place(prop: str, candidate: str, target: str) -> str:
    """A property of a candidate on a target, as the report names what was not run."""
    return f"{prop} of {candidate} on {target}"


def cause(text: str) -> str:
    """What a finding says, without the case that it was seen on: properties that say the same found one fault."""
    return text.partition(_SEEN)[0]


def not_run(left: Iterable[tuple[str, str]]) -> list[str]:
    """Lines on what was not run: pairs of what and why, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for what, why in left:
        reasons.setdefault(why, []).append(what)
    return [f"not run: {', '.join(what)}: {why}" for why, what in reasons.items()]


def not_examined(left: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Lines on properties that were not examined, a line for each reason and those who share it.

    Args:
        left: property, candidate, target and reason, in the order of the report.
    """
    seats: dict[tuple[str, str, str], list[str]] = {}
    for prop, candidate, target, why in left:
        seats.setdefault((why, target, candidate), []).append(prop)
    alike: dict[tuple[str, str, str], list[str]] = {}
    for (why, target, candidate), names in seats.items():
        alike.setdefault((why, target, _listed(names, "properties")), []).append(candidate)
    return [
        f"not-examined: {names} of {_listed(who, 'candidates')} on {target}: {why}"
        for (why, target, names), who in alike.items()
    ]


def not_kept(told: Iterable[tuple[str, str, str, str]], rejected_for: str) -> list[str]:
    """Lines on what is not required and was not kept: one for each fault, and behind it case and command of the first.

    Args:
        told: a property each, what was found there, the smallest case, and the command that shows it again.
        rejected_for: the finding that turns the candidate away, which is not said again; "" where it is accepted.
    """
    faults: dict[str, tuple[str, str, str, list[str]]] = {}
    for prop, text, case, replay in told:
        faults.setdefault(cause(text), (text, case, replay, []))[-1].append(prop)
    lines = []
    for key, (text, case, replay, names) in faults.items():
        again = key == cause(rejected_for)
        lines.append(
            f"not required, and not kept: {', '.join(names)}: {'the fault that it is rejected for' if again else text}"
        )
        if case and not again:
            lines += [f"  smallest case: {case}", f"  replay: {replay}"]
    return lines


def judged_instead(name: str) -> str:
    """The line on a file without the class that is asked for."""
    return f"judged is its class {name}: it defines no ModelNew"


def not_supported(refused: Iterable[tuple[str, str]]) -> list[str]:
    """Lines on what a candidate refuses: pairs of a feature and its words, a line for each of those."""
    answers: dict[str, list[str]] = {}
    for name, why in refused:
        answers.setdefault(why, []).append(name)
    return [f"not supported: {', '.join(names)}: {why}" for why, names in answers.items()]


def noticed(notes: Iterable[tuple[str, int]]) -> list[str]:
    """Lines on what was noticed and turns nobody away, the most frequent first: pairs of a note and its cases."""
    counts: dict[str, int] = {}
    for note, count in notes:
        counts[note] = counts.get(note, 0) + count
    frequent = sorted(counts.items(), key=lambda each: -each[1])
    return [f"noticed: {note} ({many(count, 'case')})" for note, count in frequent]


def many(count: int, thing: str) -> str:
    """A count with its noun: one property, two properties."""
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{count} {thing if count == 1 else plural}"


def _listed(names: list[str], plural: str) -> str:
    return ", ".join(names) if len(names) <= _LISTED else f"{len(names)} {plural}"
