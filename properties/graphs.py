"""CUDA graphs: a call that is captured once gives the right result for whatever data it is replayed on.

A captured call is its kernels with the arguments that they were launched with. What the host computed, read back,
allocated or counted at the time of the capture is part of the graph for good: a value from the host stays the one of
the captured data, a workspace that was given back since is somebody else's, a buffer that calls use in turn is the
same one in every replay.
"""

from __future__ import annotations

import math
from dataclasses import replace

from . import layouts, strategies
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .inputs import Input
from .layouts import CONTIGUOUS
from .manner import Manner
from .protocol import Way
from .trial import StopError, Trial, UnsupportedError

_REFUSAL = "cannot be captured in a CUDA graph"
_WHEN = "replayed in a CUDA graph on new data"


def replayed(trial: Trial, case: Case) -> None:
    """Capture a call, then replay it on other data behind the same pointer, with a call of another shape in between.

    The result is overwritten before every replay. The other shape is larger, so that what grows on demand grows, and is
    called once before the capture, too: the slot that inputs lie in must not grow while a graph knows its address.
    """
    trial.spare("graph", _REFUSAL)
    other = (2 * case.shape[0], case.columns + 1, *case.shape[2:])
    geometry = layouts.geometry(case.layout, case.shape)
    if math.prod(other) < geometry.length:
        other = (-(-geometry.length // math.prod(case.shape[1:])), *other[1:])
    larger = trial.build(replace(case, shape=other, layout=CONTIGUOUS))
    given, second, third = (trial.build(replace(case, seed=case.seed + more)) for more in range(3))
    trial.check(larger)
    trial.check(given)
    runner = trial.subject.runner
    try:
        capture(trial, given)
        replay(trial, given, second)
        trial.check(larger)
        replay(trial, second, third)
        trial.check(given)
    except (StopError, UnsupportedError):
        runner.renew()  # what is left of a capture that failed is nobody's business
        raise
    runner.forget()


def capture(trial: Trial, given: Input) -> None:
    """Judge a capture, replayed on the data that it was made with; they have been called plainly before."""
    seen = trial.attempt(given, "graph", Manner(way=Way.CAPTURED), _REFUSAL)
    trial.verdict(given, seen, "replayed in a CUDA graph on the data that it was captured with")


def replay(trial: Trial, before: Input, now: Input) -> None:
    """Judge a replay on new data; ``before`` is what lay there in the replay before."""
    seen = trial.attempt(now, "graph", Manner(way=Way.REPLAYED), "its CUDA graph cannot be replayed")
    try:
        trial.verdict(now, seen, _WHEN)
    except StopError:
        if seen.output is not None and trial.subject.operator.assess(before.logical, seen.output).fault is None:
            text = "a CUDA graph of it gives the result of the data before, though other data lie at the same address"
            trial.findings[:] = [Finding(Kind.STALE_RESULT, text, trial.findings[-1].details)]
        raise


GRAPH = Property(
    "graph",
    "Captured in a CUDA graph and replayed on new data, it gives their result, whatever was called in between.",
    lambda domain, _: strategies.cases(
        domain, ("integers", "signed", "row-scales"), elements=1 << 15, layouts=True, empty=False
    ),
    replayed,
    # Regimes of a kernel: short rows, a block or a cluster a row, the whole card a row, dimension 1 not innermost.
    pinned=tuple(
        parse(line)
        for line in (
            "shape=4x257,seed=26",
            "shape=1000x33,seed=26",
            "shape=64x4096,seed=26",
            "shape=40x65535,seed=26",
            "shape=1x1048577,seed=26",
            "shape=33x70x65,seed=26",
            "shape=64x1025,dtype=float16,layout=offset1+order1.0,seed=26",
        )
    ),
    targets=("cuda",),
    promised="graph",
)
