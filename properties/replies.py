"""What a worker's reply says, in the judging process's own terms.

A worker is believed in nothing: what has not the form of a reply is taken for its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import protocol
from .observation import Death
from .process import WorkerDiedError, garbage
from .protocol import ErrorInfo, Message, OutputMeta


@dataclass(frozen=True)
class LoadFailure:
    """Why a candidate cannot be used.

    Attributes:
        text: what is wrong, ready for a report.
        death: set where the worker died while loading.
        timed_out: whether loading took longer than `Limits.build`.
        details: more lines, of an exception or of what was printed.
        building: whether it came out of an extension build.
    """

    text: str
    death: Death | None = None
    timed_out: bool = False
    details: tuple[str, ...] = ()
    building: bool = False


def load_failure(reply: Message) -> LoadFailure:
    """What a worker says that has not loaded its candidate.

    Raises:
        WorkerDiedError: it has not written a reply.
    """
    if reply["outcome"] == "unusable":
        return LoadFailure(protocol.printable(str(reply.get("text"))))
    try:
        error = protocol.error_from(reply["error"])
        verb = {"import": "raises while it is imported", "init": "raises in __init__"}[reply["stage"]]
    except (KeyError, TypeError, ValueError):
        raise garbage("load") from None
    return LoadFailure(f"{verb}: {error}", details=tuple(error.text.strip().splitlines()[1:]), building=error.building)


def death_while_loading(dead: WorkerDiedError) -> LoadFailure:
    """What the end of a worker says that was loading its candidate."""
    text = f"the process that loads it ended: {dead.death.cause}"
    if dead.timed_out:
        text = f"is not loaded (import, build and __init__ together): {dead.death.cause}"
    return LoadFailure(text, dead.death, dead.timed_out, dead.death.log)


def error(reply: Message, operation: str) -> ErrorInfo:
    """The exception that something has come to.

    Args:
        reply: the worker's.
        operation: what it was asked for.

    Raises:
        WorkerDiedError: it has not written a reply.
    """
    try:
        return protocol.error_from(reply["error"])
    except (KeyError, TypeError, ValueError):
        raise garbage(operation) from None


def answer(reply: Message, operation: str) -> OutputMeta | ErrorInfo:
    """What a call came to: a result as it looks from outside, or an exception.

    Args:
        reply: the worker's.
        operation: what it was asked for.

    Raises:
        WorkerDiedError: it can do no more calls, or has not written a reply.
    """
    try:
        if reply["outcome"] != "raised":
            return protocol.meta_from(reply["meta"])
        if not reply.get("device_lost"):
            return protocol.error_from(reply["error"])
        lost = str(reply["error"]["text"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise garbage(operation) from None
    raise WorkerDiedError(Death(f"the GPU context is lost: {lost}", "call"), False)
