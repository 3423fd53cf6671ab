"""What the judging process and a worker say to each other: one JSON object a line, over two pipes of their own.

Requests carry *where* an input lies and what the view looks like; replies carry what the candidate's result looks like
from outside (`OutputMeta`) or how the call ended. Values never travel here: they lie in slots (`memory`).
A reply carries the ``number`` of its request.
A reply is a claim of a process that runs foreign code; the judging process uses it only for what it cannot see itself.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

#: Longest error text that a worker sends, in characters; compilers write megabytes.
MAX_TEXT = 6000

Message = dict[str, Any]  # what json gives back: the one place where types end
_Claim = TypeVar("_Claim")
#: What a compiler writes around a word to colour it.
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")

#: How the message of an error in TorchScript begins, whatever has happened, and the line in it that says what.
_IN_TORCHSCRIPT = "The following operation failed in the TorchScript interpreter."
_RAISED = re.compile(r"(?:builtins\.)?(?P<said>[A-Za-z_][\w.]*: \S.*)")

#: Under this name a worker keeps the result of a second thread.
BESIDE = "beside"
#: Calls of each thread: on two cores a shared buffer of some rows is disturbed in every second pair of calls or so.
CALLS_A_THREAD = 8
#: Calls in a row of `Way.OFTEN`: a count in 16 bits comes round, and goes on for a while. No further one is begun after
#: so many seconds.
CALLS_IN_A_ROW, SECONDS_IN_A_ROW = (1 << 16) + 1000, 8.0
#: Threads that a caller may have torch share its work among, besides one and more than there are of anything.
THREADS = (2, 3, 4, 7, 8, 12, 16, 24, 32, 64)
#: A model is not trained: it is told so, and then called as it is served.
EVALUATED = (
    "in evaluation (model.eval())",
    "in evaluation, inside torch.no_grad",
    "in evaluation, inside torch.inference_mode",
)
#: What a caller may have set around a call, in the words of a report; `worker_ways.SETTINGS` makes each so.
SETTINGS = (
    "inside torch.no_grad",
    "inside torch.inference_mode",
    *EVALUATED,
    "with one thread",
    *(f"with {count} threads" for count in THREADS),
    "with many threads",
    "with float64 as the default type",
    "with bfloat16 as the default type",
    "where algorithms must be deterministic",
    "where float32 products may be imprecise",
)
#: What a caller may have made of the same values, in the words of a report; `worker_ways.STAND_INS` makes each so.
VIEWS = ("a view of another tensor", "a view of complex numbers")
GUISES = (*VIEWS, "a parameter", "an inference tensor")
#: The result of a differentiable operation: handed over where no gradients are taken.
DIFFERENTIABLE = "a tensor that asks for a gradient"
#: What is trained, and nobody's result: handed over there, too, as where a weight is normalised.
LEARNT = "a parameter that asks for a gradient"
#: What is handed over of memory that torch, or numpy, has, in the words of a report; `worker_lent` makes each so.
LENT = (
    "rows of a larger tensor, which nobody else names",
    "a tensor of torch's own memory",
    "a tensor without its history (x.detach()), which nobody else names",
    "the memory of a numpy array (torch.from_numpy), which nobody else names",
    "a tensor in shared memory (x.share_memory_()), as from a loader's worker",
)
#: What becomes of a model beside its first instance, in the words of a report; `worker_models.MAKERS` makes each so.
INSTANCES = (
    "a second instance",
    "a copy (copy.deepcopy)",
    "an instance with the state of the first (load_state_dict)",
    "an instance that was turned into the input's type (model.to)",
    "an instance that was saved and loaded (torch.save)",
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
    OFTEN = "often"
    """`CALLS_IN_A_ROW` times on one input."""
    ELSEWHERE = "elsewhere"
    """From another thread, while this one waits."""
    LENT = "lent"
    """On what is part of something else, or its memory, and not the judging process's: one of `LENT`."""


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
        calls: how many calls were made.
        attributes: names of what the result itself was given, as `y.name = value` does.
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
    calls: int = 1
    attributes: tuple[str, ...] = ()


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
        """Type, what of the message says most in one line, place."""
        lines = self.text.strip().splitlines() or ["(no message)"]
        # A failed build's message begins with the command; what is wrong stands where a compiler says "error:".
        first = next((line.strip() for line in lines if self.building and "error: " in line), _opening(lines))
        said = first.removeprefix(f"{self.type}: ")  # an error that was caught and raised again as a text
        return f"{self.type}: {said}" + (f" ({self.where})" if self.where else "")


def _opening(lines: list[str]) -> str:
    """The first line of a message; where it ends with a colon, with what that announces, past a traceback's frames.

    Of an error in TorchScript the line that says what it is.
    """
    if lines[0].strip() == _IN_TORCHSCRIPT:
        return _behind_the_traceback(lines)
    said: list[str] = []
    quoting = False
    for line in filter(str.strip, lines):
        if line.startswith("Traceback ("):
            quoting = True
        elif not (quoting and line.startswith(" ")):
            said.append(line.strip())
            if not said[-1].endswith(":"):
                break
    return " ".join(said) or lines[0]


def _behind_the_traceback(lines: list[str]) -> str:
    """What was raised in TorchScript: the last line that names an exception, past its source; else the last one."""
    raised = [found["said"] for line in lines[1:] if (found := _RAISED.match(line))]
    return raised[-1] if raised else next(line.strip() for line in reversed(lines) if line.strip())


#: What a worker's claims must consist of.
_TYPES: dict[type, dict[str, Any]] = {record: get_type_hints(record) for record in (OutputMeta, ErrorInfo)}


def to_message(record: Place | View | OutputMeta | ErrorInfo) -> Message:
    """A record as plain JSON types."""
    return {name: to_message(value) if isinstance(value, Place) else value for name, value in vars(record).items()}


def view_from(message: Message) -> View:
    """The inverse of `to_message` for a `View`."""
    fields = _tuples(message)
    return View(Place(**fields.pop("place")), **fields)


def meta_from(message: Message) -> OutputMeta:
    """The inverse of `to_message` for an `OutputMeta`.

    Raises:
        TypeError, ValueError: the worker's claim has another form than it should.
    """
    meta = _believable(OutputMeta(**_tuples(message)))
    if meta.layout == "strided" and len(meta.strides) != len(meta.shape):
        raise ValueError(f"{len(meta.strides)} strides of {len(meta.shape)} dimensions")
    return meta


def error_from(message: Message) -> ErrorInfo:
    """The inverse of `to_message` for an `ErrorInfo`; raises as `meta_from` does."""
    return _believable(ErrorInfo(**_tuples(message)))


def _believable(claim: _Claim) -> _Claim:
    """A record whose fields are of the types that they are declared to be.

    Raises:
        TypeError: one is not.
    """
    for name, kind in _TYPES[type(claim)].items():
        if not _is(getattr(claim, name), kind):
            raise TypeError(f"{name} is no {kind}")
    return claim


def _is(value: object, kind: Any) -> bool:
    """Whether a value is of a type: a plain one, or a tuple of such."""
    if get_origin(kind) is not tuple:
        return type(value) is kind
    inner = get_args(kind)
    if not isinstance(value, tuple) or (inner[-1] is not Ellipsis and len(value) != len(inner)):
        return False
    return all(type(each) is inner[0] for each in value)


def _tuples(message: Message) -> Message:
    """The message with its lists as tuples, and words that can be shown."""
    if not isinstance(message, dict):
        raise TypeError("no message")
    return {
        name: tuple(map(_shown, value)) if isinstance(value, list) else _shown(value) for name, value in message.items()
    }


def _shown(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def printable(text: str) -> str:
    """Words of a candidate's as they may stand on a terminal, in a report and on a page.

    Colours are left out; what would move a cursor, or cannot be encoded, is spelled.
    """
    plain = _COLOUR.sub("", text)
    if plain.isascii() and plain.replace("\n", "").isprintable():
        return plain
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in plain
    )
