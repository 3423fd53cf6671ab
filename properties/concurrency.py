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
from .protocol import BESIDE
from .trial import Trial

_REFUSAL = "cannot be called from two threads at once"
_WHEN = "when two threads call it at once"


def beside(trial: Trial, case: Case) -> None:
    """Two threads call at once, on inputs of one shape and other values; a result of each is judged."""
    trial.spare("threads", _REFUSAL)
    first, second = trial.build(case), trial.build(replace(case, seed=case.seed + 1))
    trial.check(first)
    trial.check(second)
    runner = trial.subject.runner
    try:
        seen = trial.attempt(first, "threads", Manner(beside=second), _REFUSAL)
        trial.verdict(first, seen, _WHEN)
        trial.verdict(second, runner.collect(BESIDE, second), _WHEN)
    finally:
        runner.forget()


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
