"""Two at once: host threads, and on a GPU a stream each. Nothing that one call needs is the other's.

PyTorch's own operations may be called from any number of threads, and a module that is served or replicated is. A
program that keeps a workspace, a counter or a result in a place that all calls share is right while one thread calls
it. Whether it may be called from two is its author's to promise.
"""

from __future__ import annotations

from dataclasses import replace

from . import strategies
from .cases import Case, parse
from .examination import Property
from .manner import Manner
from .protocol import BESIDE, CALLS_A_THREAD
from .trial import Trial, UnsupportedError

_REFUSAL = "cannot be called from two threads at once"
_WHEN = "when two threads call it at once"
#: Calls that both threads make together, which is one call to the runner.
_CALLS = 2 * CALLS_A_THREAD


def beside(trial: Trial, case: Case) -> None:
    """Two threads call at once, on inputs of one shape and other values; a result of each is judged."""
    trial.spare("threads", _REFUSAL)
    first, second = trial.build(case), trial.build(replace(case, seed=case.seed + 1))
    runner = trial.subject.runner
    trial.check(first)
    before = runner.called
    trial.check(second)
    _leave_out_if_slow(trial, runner.called - before)
    try:
        seen = trial.attempt(first, "threads", Manner(beside=second), _REFUSAL)
        trial.verdict(first, seen, _WHEN)
        trial.verdict(second, runner.collect(BESIDE, second), _WHEN)
    finally:
        runner.forget()


def _leave_out_if_slow(trial: Trial, seconds: float) -> None:
    """End the case of a candidate whose calls could not all be made in the time of one: it does not hang."""
    limit = trial.subject.limits.call
    if _CALLS * seconds > limit and "threads" not in trial.subject.required:
        words = f"not called from two threads: {_CALLS} calls of {seconds:.2g} s are more than the {limit:g} s of one"
        trial.notes.add(words)
        raise UnsupportedError(words)


THREADS = Property(
    "threads",
    "Two threads that call it at once, on a GPU on two streams, each get the result that they get alone.",
    lambda domain, _: strategies.cases(
        domain, ("integers", "signed", "row-scales"), elements=1 << 14, layouts=True, empty=False
    ),
    beside,
    # Long enough that the calls overlap, whoever is started first; other regimes of a kernel besides.
    pinned=(
        parse("shape=64x1024,values=row-scales,seed=24"),
        parse("shape=9x65537,values=row-scales,seed=24"),
        parse("shape=8x300x65,values=row-scales,seed=24"),
    ),
    promised="threads",
)
