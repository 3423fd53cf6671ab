"""What was seen of one call: the only thing, beside the input, that a judge may look at."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import torch

from .protocol import ErrorInfo, OutputMeta


class Outcome(enum.Enum):
    """How a call ended."""

    RETURNED = "returned"
    RAISED = "raised"
    DIED = "died"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True)
class Death:
    """How a worker ended.

    Attributes:
        cause: a signal's name, ``exit status 0``, or ``no answer within 20 s``.
        during: what it was asked for: start, load, call.
        log: the last lines that it printed.
    """

    cause: str
    during: str
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class Damage:
    """Bytes of the input's storage and its surroundings that changed during a call.

    Attributes:
        inside: how many elements of the view changed, with the first one's flat index.
        first: flat row-major index of the first changed element of the view, or None.
        outside: how many bytes changed that the view does not show (gaps, margins).
    """

    inside: int
    first: int | None
    outside: int


@dataclass(frozen=True)
class Observation:
    """One call, as seen from the judging process.

    Attributes:
        outcome: how it ended.
        meta: what the result looks like from outside (RETURNED only).
        output: its values, contiguous, in the judging process's own memory; None where shape or dtype do not fit.
            Those of a GiB and more hold until the next call only: memory may not suffice for a second copy.
        device: where the candidate saw its input, as torch names it.
        error: the exception (RAISED only).
        death: how the worker ended (DIED, TIMED_OUT only).
        damage: what changed in the input's memory; None where nothing did.
        inflow_written: whether the gradient that flowed in holds something else now.
        seconds: wall time of the call, the copy out of the worker included.
    """

    outcome: Outcome
    meta: OutputMeta | None = None
    output: torch.Tensor | None = None
    device: str = "cpu"
    error: ErrorInfo | None = None
    death: Death | None = None
    damage: Damage | None = None
    inflow_written: bool = False
    seconds: float = 0.0
