"""What a call may not leave behind, nor do meanwhile: the input is only read, and memory does not pile up.

That the input holds what it held before is looked at after every call. A program may still have written to it in
between: another thread, or a second stream, that reads it meanwhile gets wrong results, and an input in memory that
cannot be written (a mapped file) ends the process. And a program may be right a thousand times and keep something of
each call.
"""

from __future__ import annotations

from itertools import pairwise

from . import strategies
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .histories import look_again
from .manner import Manner
from .observation import Outcome
from .trial import NotRunError, Trial

#: Calls after which a program has what it keeps for good (workspaces, plans), and calls that are looked at.
_SETTLING, _CALLS = 16, 64
#: How many times so many it must have grown in: one that keeps what its last fifty calls made, or leaves it to Python's
#: collector, has an end. That comes after twice as many calls and more: holes in the heap are filled last.
_SPANS = 4
#: Share of the results' bytes, over the calls looked at, by which the process may grow: an allocator rounds and splits,
#: and a program that keeps a result in every second call is over it.
_SHARE = 0.25
#: Bytes by which any process may grow: an allocator takes memory by the megabyte.
_FREE = 4 << 20
#: Files, threads, children and tensors, for each call looked at, by which it may grow: of one in every second call
#: there is no end. Of small objects it is a few: a number that is noted does no harm for long, a row of them does.
_HELD = 0.5
_NOTED = 8
#: What goes with its last name, or when Python's collector comes.
_COLLECTED = frozenset({"tensors", "objects"})
#: Why a process may not have more and more of them.
_WHY_NOT = {
    **dict.fromkeys(("open files", "threads", "child processes"), "a system has only so many"),
    **dict.fromkeys(("tensors", "objects"), "small as they are, nobody lets go of them"),
}


def sealed(trial: Trial, case: Case) -> None:
    """A call on memory that can be written, then one on memory that cannot."""
    given = trial.build(case)
    trial.check(given)
    seen = trial.observe(given, manner=Manner(sealed=True))
    if seen.outcome is not Outcome.DIED:
        trial.verdict(given, seen)
        return
    assert seen.death is not None
    text = "writes to its input, and puts back what was there: where that memory can only be read, the process ends"
    trial.report(Finding(Kind.INPUT_MODIFIED, f"{text} ({seen.death.cause})"))


def growing(trial: Trial, case: Case) -> None:
    """Many calls of one kind in a fresh process, and its memory before and after: an old one has room from before.

    Whoever has grown for a while and does not go on may hand out what it keeps: an early result is looked at then.
    """
    given = trial.build(case)
    trial.subject.renew()
    trial.check(given)
    runner = trial.subject.runner
    trial.keep(given, "early")
    one = given.logical.numel() * given.logical.element_size()
    sizes, held = list[int](), list[dict[str, int]]()
    for count in (_SETTLING, *(_CALLS,) * _SPANS):
        for _ in range(count):
            seen = trial.observe(given)
            if seen.outcome is not Outcome.RETURNED:
                trial.verdict(given, seen)
        now = runner.resident_bytes()
        if now is None:
            raise NotRunError("this system does not tell how much memory a process has")
        sizes.append(now)
        held.append(runner.holdings())
        spans = list(pairwise(held))
        more = [name for name in held[0] if all(_more(name, *span) > _most(name) * _CALLS for span in spans)]
        larger = all(now - then > max(_SHARE * _CALLS * one, _FREE) for then, now in pairwise(sizes))
        if len(sizes) > 1 and not more and not larger:
            break
    calls, grown = _CALLS * _SPANS, sizes[-1] - sizes[0]
    if _COLLECTED & {*more}:
        held.append(runner.holdings(collected=True))  # of what is left to Python's collector there is an end
        ended = {name for name in _COLLECTED if larger or _more(name, held[0], held[-1]) <= _most(name) * calls}
        more = [name for name in more if name not in ended]  # how large they are says more
    if not more and not larger:
        look_again(trial, "early", given, None)
        runner.forget()
        return
    for name in more:
        text = f"the process has {_more(name, held[0], held[-1])} more {name} after {calls} calls"
        trial.report(Finding(Kind.STATE_LEAK, f"{text}: {_WHY_NOT[name]}"))
    text = f"the process grows by {grown / 2**20:.0f} MiB over {calls} calls whose results are let go"
    trial.report(Finding(Kind.STATE_LEAK, f"{text}: {grown / calls / one:.2g} times a result in every call"))


def _most(name: str) -> float:
    """How many more of them there may be after each call."""
    return _NOTED if name == "objects" else _HELD


def _more(name: str, then: dict[str, int], now: dict[str, int]) -> int:
    """How many more of them there are now; none where that is not told."""
    return now[name] - then[name] if name in then and name in now else 0


READ_ONLY = Property(
    "read-only",
    "The input is only ever read, not even written and put back.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed"), elements=1 << 13, layouts=True, empty=False),
    sealed,
    pinned=(
        parse("shape=4x257,seed=25"),
        parse("shape=2x65535,seed=25"),
        parse("shape=300x129,seed=25"),
        parse("shape=6x1024,layout=offset1,seed=25"),
        parse("shape=6x64,layout=order1.0,seed=25"),
    ),
    targets=("cpu",),
)

LEAK = Property(
    "leak",
    "Memory, open files, threads, children, tensors and other objects do not grow with the number of calls.",
    None,
    growing,
    pinned=(parse("shape=128x1024,seed=26"), parse("shape=128x1024,layout=order1.0,seed=26")),
    targets=("cpu",),
)
