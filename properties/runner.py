"""Run a candidate on inputs and say what was seen; survive whatever it does.

A `Runner` belongs to one candidate on one target. It owns the memory of inputs and outputs, keeps a worker with the
candidate loaded, replaces it when it dies, and turns every reply or death into an `Observation`. It judges nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import filelock
import torch

from . import protocol
from .device_memory import DeviceSlot
from .inputs import Input
from .memory import MARGIN, MARGIN_BYTE, Slot
from .observation import Damage, Death, Observation, Outcome
from .process import Nursery, WorkerDiedError, WorkerInside, WorkerProcess
from .protocol import Message, Place, View

#: What the judging process puts where a worker is to copy a result: no value that a copy could leave behind.
_POISON = torch.tensor([0xA5, 0x5A, 0xA5, 0x7F, 0xA5, 0x5A, 0xA5, 0x7F], dtype=torch.uint8)
_OUTPUT_SLOT = 1
#: Importing a large library, or tracing a model for the first time, takes a few times as long as a call may.
FIRST = 3
#: Bytes compared at a time.
_COMPARED = 1 << 28


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds.

    Attributes:
        start: a worker's own start (the import of torch).
        build: loading a candidate, and its first call of a kind, while compilers that it started are at work.
        call: a call. Loading, and a first call of a kind, may take `FIRST` times as long without a compiler's help.
    """

    start: float = 120.0
    build: float = 300.0
    call: float = 20.0

    @property
    def first(self) -> float:
        """Seconds for loading, and for a first call of a kind, where no compiler is at work."""
        return min(FIRST * self.call, self.build)


@dataclass(frozen=True)
class LoadFailure:
    """Why a candidate cannot be used.

    Attributes:
        text: what is wrong, ready for a report.
        death: set where the worker died while loading.
        timed_out: whether loading took longer than `Limits.build`.
    """

    text: str
    death: Death | None = None
    timed_out: bool = False
    details: tuple[str, ...] = ()


@dataclass
class Runner:
    """Runs one candidate.

    Attributes:
        candidate: its file.
        init: arguments of ``ModelNew``.
        limits: time limits.
        nursery: where its workers come from.
        cache: folder under which the candidate's extension builds lie.
        device: where inputs lie, as torch names it.
        isolated: whether it runs in processes of its own; inside this one otherwise, for debugging only.
        model: the class in its file.
        compile_mode: of ``torch.compile``, for the runner of a compiled peer; "" otherwise.
        shared: another runner's slots, to be used instead of slots of its own.
        deaths: how many workers have died so far.
    """

    candidate: Path
    init: tuple[object, ...]
    limits: Limits
    nursery: Nursery
    cache: Path
    device: str = "cpu"
    isolated: bool = True
    model: str = "ModelNew"
    compile_mode: str = ""
    shared: tuple[Slot | DeviceSlot, ...] = ()
    deaths: int = 0
    _slots: list[Slot | DeviceSlot] = field(default_factory=list)
    _worker: WorkerProcess | WorkerInside | None = None

    def __post_init__(self) -> None:
        """Make the slots: one for the input, one for the output."""
        own = [Slot() if self.device == "cpu" else DeviceSlot(self.device) for _ in range(0 if self.shared else 2)]
        self._slots = [*self.shared, *own]

    def load(self) -> LoadFailure | None:
        """Make sure that a worker has the candidate loaded; None where it has."""
        if self._worker is not None:
            return None
        request = {
            "op": "load",
            "path": str(self.candidate),
            "tag": self.tag,
            "init": list(self.init),
            "model": self.model,
            "device": self.device,
            "compile": self.compile_mode,
        }
        try:
            worker = self._start()
        except WorkerDiedError as dead:
            return LoadFailure(f"no process to load it in: {dead.death.cause}", dead.death)
        try:
            with self._build_lock():
                reply = worker.ask(request, self.limits.first, "load", self.limits.build)
        except WorkerDiedError as dead:
            worker.close()
            self.deaths += 1
            text = f"the process that loads it ended: {dead.death.cause}"
            if dead.timed_out:
                text = f"is not loaded (import, build and __init__ together): {dead.death.cause}"
            return LoadFailure(text, dead.death, dead.timed_out, dead.death.log)
        except filelock.Timeout as busy:
            worker.close()
            return LoadFailure(f"another process has been building it for {self.limits.build:g} s: {busy.lock_file}")
        if reply["outcome"] != "loaded":
            worker.close()
            return _load_failure(reply)
        self._worker = worker
        return None

    def observe(
        self, given: Input, *, timeout: float | None = None, keep: str = "", slack: int = 0, first: bool = False
    ) -> Observation:
        """Call the candidate on one input.

        Args:
            given: the input.
            timeout: seconds, by default `Limits.call`.
            keep: a name under which the worker keeps the result for `collect`; the values are then not copied out.
            slack: bytes between the input's end and the page that nothing may touch.
            first: whether this is a first call of a kind, which may compile.
        """
        failure = self.load()
        if failure is not None:
            outcome = Outcome.TIMED_OUT if failure.timed_out else Outcome.DIED
            return Observation(outcome, death=failure.death or Death(failure.text, "load", failure.details))
        start = self._slots[0].place(given.storage, slack)
        window = self._slots[0].window(start)
        view = self._view(given, start)
        request = {"op": "call", "view": protocol.to_message(view), "keep": keep, "output": None}
        if not keep:
            request["output"] = protocol.to_message(self._output_place(given))
        seconds = self.limits.first if first else timeout or self.limits.call
        seen = self._ask(request, seconds, given, self.limits.build if first else 0.0)
        return replace(seen, damage=_damage(given, window))

    def collect(self, kept: str, given: Input) -> Observation:
        """The values, now, of a result that the worker kept from an earlier call on ``given``."""
        if self._worker is None:
            return Observation(Outcome.DIED, death=Death("an earlier call ended the process", "collect"))
        view = self._view(given, self._slots[0].capacity)
        place = self._output_place(given)
        request = {
            "op": "collect",
            "kept": kept,
            "view": protocol.to_message(view),
            "output": protocol.to_message(place),
        }
        return self._ask(request, self.limits.call, given)

    def ask(self, request: Message, timeout: float) -> Message:
        """Ask the worker that has the candidate loaded for something that is no call.

        Raises:
            WorkerDiedError: it ended or fell silent; the next `load` starts another.
        """
        assert self._worker is not None, "load comes first"
        try:
            return self._worker.ask(request, timeout, request["op"])
        except WorkerDiedError:
            self._worker.close()
            self._worker = None
            self.deaths += 1
            raise

    def forget(self) -> None:
        """Let go of all kept results."""
        if self._worker is not None:
            with contextlib.suppress(WorkerDiedError):
                self._worker.ask({"op": "forget"}, self.limits.call, "forget")

    def renew(self) -> None:
        """End the present worker, so that the next call meets a fresh one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def close(self) -> None:
        """End all workers and give their memory back."""
        self.renew()
        for slot in () if self.shared else self._slots:
            slot.close()

    @property
    def loaded(self) -> bool:
        """Whether a worker has the candidate loaded."""
        return self._worker is not None

    @property
    def slots(self) -> tuple[Slot | DeviceSlot, ...]:
        """Where inputs and outputs lie, in this order."""
        return tuple(self._slots)

    @property
    def tag(self) -> str:
        """Eight hex digits of the candidate's path and content: its build folder and module name carry them."""
        content = self.candidate.read_bytes() if self.candidate.is_file() else b""
        return hashlib.sha256(str(self.candidate).encode() + b"\0" + content).hexdigest()[:8]

    def _start(self) -> WorkerProcess | WorkerInside:
        if not self.isolated:
            return WorkerInside([slot.fd for slot in self._slots if slot.fd >= 0])
        environment = {"TORCH_EXTENSIONS_DIR": str(self._build_dir())}
        return WorkerProcess(
            self.nursery, [slot.fd for slot in self._slots if slot.fd >= 0], environment, self.limits.start
        )

    def _build_dir(self) -> Path:
        folder = self.cache / "candidates" / self.tag
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def _build_lock(self) -> Iterator[None]:
        """One process at a time loads (and so builds) this candidate; locks that a killed build left are removed."""
        folder = self._build_dir()
        with filelock.FileLock(folder / "kernelproof.lock", timeout=self.limits.build):
            for stale in folder.glob("*/lock"):
                stale.unlink(missing_ok=True)
            yield

    def _view(self, given: Input, start: int) -> View:
        slot = self._slots[0]
        place = Place(0, slot.capacity, start, given.nbytes, self.device, slot.handle)
        return View(
            place,
            given.dtype,
            given.shape,
            given.geometry.strides,
            given.geometry.offset,
            given.negated,
            given.requires_grad,
        )

    def _output_place(self, given: Input) -> Place:
        slot = self._slots[_OUTPUT_SLOT]
        nbytes = given.logical.numel() * given.logical.element_size()
        padded = -(-nbytes // _POISON.numel()) * _POISON.numel()
        start = slot.reserve_filled(padded, _POISON)
        return Place(_OUTPUT_SLOT, slot.capacity, start, nbytes, self.device, slot.handle)

    def _ask(self, request: Message, timeout: float, given: Input, patience: float = 0.0) -> Observation:
        assert self._worker is not None
        began = time.monotonic()
        try:
            reply = self._worker.ask(request, timeout, request["op"], patience)
            seen = self._seen(reply, request, given, time.monotonic() - began)
        except WorkerDiedError as dead:
            self._worker.close()
            self._worker = None
            self.deaths += 1
            outcome = Outcome.TIMED_OUT if dead.timed_out else Outcome.DIED
            return Observation(outcome, death=dead.death, seconds=time.monotonic() - began)
        return seen

    def _seen(self, reply: Message, request: Message, given: Input, seconds: float) -> Observation:
        try:
            if reply["outcome"] == "raised":
                if reply.get("device_lost"):
                    assert self._worker is not None
                    self._worker.close()
                    raise WorkerDiedError(Death(f"the GPU context is lost: {reply['error']['text']}", "call"), False)
                return Observation(Outcome.RAISED, error=protocol.error_from(reply["error"]), seconds=seconds)
            meta = protocol.meta_from(reply["meta"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise WorkerDiedError(Death("wrote garbage where its reply belongs", request["op"]), False) from None
        output = None
        if request["output"] is not None and meta.shape == given.shape and meta.dtype == given.dtype:
            place = Place(**request["output"])
            raw = self._slots[_OUTPUT_SLOT].data(place.start, place.nbytes).clone()
            output = raw.view(given.logical.dtype).view(given.shape)
        return Observation(Outcome.RETURNED, meta=meta, output=output, seconds=seconds)


def _load_failure(reply: Message) -> LoadFailure:
    if reply["outcome"] == "unusable":
        return LoadFailure(str(reply.get("text")))
    error = protocol.error_from(reply["error"])
    verb = {"import": "raises while it is imported", "init": "raises in __init__"}[reply["stage"]]
    return LoadFailure(f"{verb}: {error}", details=tuple(error.text.strip().splitlines()[1:]))


def _damage(given: Input, window: torch.Tensor) -> Damage | None:
    """What changed in the input's memory since it was placed; None where nothing did."""
    before = given.storage.view(torch.uint8)
    data = window[MARGIN : MARGIN + given.nbytes]
    edges = (window[:MARGIN], window[MARGIN + given.nbytes :])
    outside = sum(int((edge != MARGIN_BYTE).sum()) for edge in edges)
    pieces = zip(data.split(_COMPARED), before.split(_COMPARED), strict=True)
    if not outside and all(torch.equal(now, then) for now, then in pieces):
        return None
    changed = (data != before).view(-1, given.storage.element_size()).any(1)
    shown = changed.as_strided(given.shape, given.geometry.strides, given.geometry.offset)
    flat = shown.reshape(-1).nonzero()
    inside, first = int(shown.sum()), int(flat[0]) if len(flat) else None
    shown.fill_(False)  # what is left has changed in the gaps
    outside += int(changed.sum()) * given.storage.element_size()
    return Damage(inside, first, outside)
