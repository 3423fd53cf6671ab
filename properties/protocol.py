"""What the judging process and a worker say to each other: one JSON object a line, over two pipes of their own.

Requests carry *where* an input lies and what the view looks like; replies carry what the candidate's result looks like
from outside (`OutputMeta`) or how the call ended. Values never travel here: they lie in slots (`memory`).
A reply carries the ``number`` of its request.
A reply is a claim of a process that runs foreign code; the judging process uses it only for what it cannot see itself.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

#: Longest error text that a worker sends, in characters; compilers write megabytes.
MAX_TEXT = 6000

Message = dict[str, Any]  # what json gives back: the one place where types end

#: Under this name a worker keeps the result of a second thread.
BESIDE = "beside"
#: What a caller may have set around a call, in the words of a report; `worker_ways.SETTINGS` makes each so.
SETTINGS = (
    "inside torch.no_grad",
    "inside torch.inference_mode",
    "in evaluation (model.eval())",
    "with one thread",
    "with seven threads",
    "with 67 threads",
    "with float64 as the default type",
    "where algorithms must be deterministic",
)
#: A worker fills results with this byte once they were copied out, as their caller may: no pattern of memory that
#: nobody wrote, and a finite number in every format.
OVERWRITTEN_BYTE = 0x5B


class Way(enum.StrEnum):
    """What stands between the caller and the model."""

    PLAIN = "plain"
    COMPILED = "compiled"
    """`torch.compile` around the model."""
    CAPTURED = "captured"
    """On a GPU: the call is captured in a CUDA graph, which is then replayed once."""
    REPLAYED = "replayed"
    """The graph that was captured last is replayed on what now lies where its input lay; the model is not called."""


@dataclass(frozen=True)
class Place:
    """Bytes in a slot.

    Attributes:
        slot: number of the slot.
        capacity: its present size in bytes.
        start, nbytes: where in it.
        device: where the worker is to see it, as torch names it.
        handle: CUDA IPC handle in hex; "" where the slot's memory is the host's.
    """

    slot: int
    capacity: int
    start: int
    nbytes: int
    device: str = "cpu"
    handle: str = ""


@dataclass(frozen=True)
class View:
    """A tensor over the bytes of a place."""

    place: Place
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    negated: bool = False
    requires_grad: bool = False


@dataclass(frozen=True)
class OutputMeta:
    """What a result looks like from outside.

    Attributes:
        type: qualified name of its exact class; the fields below are empty for what is not exactly a `torch.Tensor`,
            and for a nested one.
        storage: addresses of its storage's first byte and of the byte behind its last.
        input: the same for the input's storage, so that an overlap can be seen.
        current: number of the GPU that is current after the call; 0 before every call.
        flows: whether the result itself asked for a gradient, before it was replaced by what flows back.
        pending: what a failed launch has left behind for the next operation to raise; "" for nothing.
        negated: whether it is lazily negated.
        inference: whether it was made in inference mode, though its caller is in none.
        altered: what the caller's tensor object says otherwise behind the call, in words.
        written: whether an operation has written to the caller's tensor, whatever that holds now.
        left: what the call has changed in the process, in words.
    """

    type: str
    is_tensor: bool = False
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    strides: tuple[int, ...] = ()
    layout: str = ""
    requires_grad: bool = False
    storage: tuple[int, int] = (0, 0)
    input: tuple[int, int] = (0, 0)
    current: int = 0
    pending: str = ""
    flows: bool = False
    negated: bool = False
    inference: bool = False
    altered: tuple[str, ...] = ()
    written: bool = False
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class ErrorInfo:
    """An exception of the candidate.

    Attributes:
        type: its class's name.
        bases: names of all its base classes, for "is an IndexError".
        text: its message, shortened to `MAX_TEXT`.
        where: file and line of the innermost frame in the candidate's own file, if there is one.
        building: whether it came out of an extension build.
        left: what the call that raised it has changed in the process, in words.
    """

    type: str
    bases: tuple[str, ...]
    text: str
    where: str = ""
    building: bool = False
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Type, the line of the message that says most, place."""
        lines = self.text.strip().splitlines() or ["(no message)"]
        # A failed build's message begins with the command; what is wrong stands where a compiler says "error:".
        first = next((line.strip() for line in lines if self.building and "error: " in line), lines[0])
        return f"{self.type}: {first}" + (f" ({self.where})" if self.where else "")


def to_message(record: Place | View | OutputMeta | ErrorInfo) -> Message:
    """A record as plain JSON types."""
    return asdict(record)


def view_from(message: Message) -> View:
    """The inverse of `to_message` for a `View`."""
    fields = _tuples(message)
    return View(Place(**fields.pop("place")), **fields)


def meta_from(message: Message) -> OutputMeta:
    """The inverse of `to_message` for an `OutputMeta`.

    Raises:
        TypeError, ValueError: the worker's claim has another form than it should.
    """
    return OutputMeta(**_tuples(message))


def error_from(message: Message) -> ErrorInfo:
    """The inverse of `to_message` for an `ErrorInfo`."""
    fields = dict(message)
    return ErrorInfo(bases=tuple(fields.pop("bases")), **fields)


def _tuples(message: Message) -> Message:
    """The message with its lists as tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in message.items()}
