"""Run a candidate on inputs and say what was seen; survive whatever it does.

A `Runner` belongs to one candidate on one target. It owns the memory of inputs and outputs, keeps a worker with the
candidate loaded, replaces it when it dies, and turns every reply or death into an `Observation`. It judges nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import filelock
import torch

from kernels.folder import VARIABLE as CACHE_VARIABLE

from . import protocol, replies, slots
from .gpu import ANSWER_SECONDS, Gpu, GpuGoneError
from .inputs import Input
from .limits import Limits
from .manner import PLAIN, Manner, kinds
from .memory import OutOfMemoryError, available_bytes
from .observation import Damage, Death, Observation, Outcome
from .process import Nursery, WorkerDiedError, WorkerInside, WorkerProcess
from .protocol import ErrorInfo, Message, Place, View
from .replies import LoadFailure
from .slots import Slots

#: A result from this size on is looked at where it lies, and holds until the next call: a copy might not fit.
_KEPT_APART = 1 << 30
#: Workers that died one behind the other, without an answered call between, after which the GPU is asked whether it
#: is still there.
_DEATHS_IN_A_ROW = 3
#: A candidate may put there what it likes, and a later worker, or run, finds it.
_SPOILT = "the folder of its builds cannot be used, remove what is there"


@dataclass
class Runner:
    """Runs one candidate.

    Attributes:
        candidate: its file.
        init: arguments of ``ModelNew``.
        limits: time limits.
        nursery: where its workers come from.
        cache: folder under which the candidate's extension builds lie.
        device: where the candidate sees inputs, as torch names it.
        isolated: whether it runs in processes of its own; inside this one otherwise, for debugging only.
        model: the class in its file.
        compile_mode: of ``torch.compile``, for the runner of a compiled peer; "" otherwise.
        slots: where inputs and results lie; made where none are given.
        borrows: whether the slots are another runner's, who gives them back.
        gpu: the card; the same for all runners of a run.
        deaths: how many workers have died so far.
        called: seconds that calls have taken so far.
        taken: the class that is run, known after the first `load`: ``Model`` in a file without ``ModelNew``.
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
    slots: Slots | None = None
    borrows: bool = False
    gpu: Gpu = field(default_factory=Gpu)
    deaths: int = 0
    called: float = 0.0
    taken: str = ""
    _deaths_in_a_row: int = 0
    _answered: frozenset[str] = frozenset()
    _hung: bool = False
    _put_aside: Place | None = None
    _worker: WorkerProcess | WorkerInside | None = None

    def __post_init__(self) -> None:
        """Make slots where none are given."""
        if self.slots is None:
            self.slots = Slots(self.device)

    def load(self) -> LoadFailure | None:
        """Make sure that a worker has the candidate loaded; None where it has.

        Raises:
            GpuGoneError: the GPU does not answer any more.
            OutOfMemoryError: its memory is used up before anything of the candidate has run.
        """
        if self._worker is not None:
            return None
        if self.gone:
            raise GpuGoneError(self.gone)
        try:
            self.build_folder()
        except OSError as spoilt:
            return LoadFailure(f"{_SPOILT}: {spoilt}")
        try:
            worker = self._start()
        except WorkerDiedError as dead:
            return LoadFailure(f"no process to load it in: {dead.death.cause}", dead.death)
        try:
            with self._build_lock():
                reply = worker.ask(self.what(), self.limits.first, "load", self.limits.build)
            failure = None if reply["outcome"] == "loaded" else replies.load_failure(reply)
        except WorkerDiedError as dead:
            worker.close()
            self._died(dead)
            return replies.death_while_loading(dead)
        except filelock.Timeout as busy:
            worker.close()
            return LoadFailure(f"another process has been building it for {self.limits.build:g} s: {busy.lock_file}")
        except OSError as spoilt:
            worker.close()
            return LoadFailure(f"{_SPOILT}: {spoilt}")
        if failure is not None:
            worker.close()
            return failure
        self._worker, self.taken = worker, str(reply.get("model", self.model))
        self._answered = frozenset()
        return None

    def what(self) -> Message:
        """The request to load the candidate."""
        return {
            "op": "load",
            "path": str(self.candidate),
            "tag": self.tag,
            "init": list(self.init),
            "model": self.model,
            "device": self.device,
            "compile": self.compile_mode,
        }

    def observe(
        self,
        given: Input,
        *,
        timeout: float | None = None,
        keep: str = "",
        slack: int = 0,
        first: bool = False,
        manner: Manner = PLAIN,
    ) -> Observation:
        """Call the candidate on one input.

        Args:
            given: the input.
            timeout: seconds, by default `Limits.call`, and `Limits.first` for a process's first call of a kind.
            keep: a name under which the worker keeps the result for `collect`; the values are then not copied out.
            slack: bytes between the input's end and the page that nothing may touch.
            first: whether this counts as a first call of a kind, which may compile, in any case.
            manner: how it is called.

        Raises:
            GpuGoneError: the GPU does not answer any more.
        """
        failure = self.load()
        if failure is not None:
            outcome = Outcome.TIMED_OUT if failure.timed_out else Outcome.DIED
            return Observation(outcome, death=failure.death or Death(failure.text, "load", failure.details))
        with self.watched():
            now = given if manner.before is None else manner.before
            place = self.memory.put(slots.ASIDE if manner.aside else slots.INPUT, now.storage, slack)
            self._put_aside = place if manner.aside else self._put_aside
            inflow = None if manner.inflow is None else self._aside(manner.inflow)
            request = {
                "op": "call",
                "view": protocol.to_message(_view(given, place)),
                "keep": keep,
                "output": None if keep else protocol.to_message(self.memory.room(given)),
                "side": manner.side,
                "autocast": manner.autocast,
                "late": None if manner.before is None else self._aside(given.storage),
                "inflow": inflow,
                "beside": None if manner.beside is None else self._view_aside(manner.beside),
                "way": manner.way,
                "busy": manner.busy,
                "stand_in": manner.stand_in,
                "setting": manner.setting,
                "sealed": manner.sealed,
                "instance": manner.instance,
            }
        kind = kinds(given, manner)
        # What is compiled for a kind of call goes with its process: a fresh one may have it all to do again.
        builds = first or (timeout is None and not kind <= self._answered)
        seconds = self.limits.first if first or (builds and not self._hung) else timeout or self.limits.call
        seen = self._ask(request, seconds, given, self.limits.build if builds else 0.0)
        self._hung |= seen.outcome is Outcome.TIMED_OUT
        if seen.outcome is not Outcome.TIMED_OUT:
            self._answered |= kind
        if self.gone:
            return seen
        with self.watched():
            damage = self.memory.damage(given, place)
            if manner.inflow is None or inflow is None:
                return replace(seen, damage=damage)
            same = torch.equal(self.memory.found(Place(**inflow)), manner.inflow.view(torch.uint8))
            return replace(seen, damage=damage, inflow_written=not same)

    def aside(self, given: Input) -> Damage | None:
        """What has become of an input that was put aside (`Manner.aside`); nothing else may have been there since."""
        assert self._put_aside is not None, "a call on it comes first"
        with self.watched():
            return self.memory.damage(given, self._put_aside)

    def collect(self, kept: str, given: Input) -> Observation:
        """The values, now, of a result that the worker kept from an earlier call on ``given``."""
        if self._worker is None:
            return Observation(Outcome.DIED, death=Death("an earlier call ended the process", "collect"))
        view = _view(given, self.memory.place(slots.INPUT, self.memory[slots.INPUT].capacity, given.nbytes))
        with self.watched():
            place = self.memory.room(given)
        request = {
            "op": "collect",
            "kept": kept,
            "view": protocol.to_message(view),
            "output": protocol.to_message(place),
        }
        return self._ask(request, self.limits.call, given)

    def ask(self, request: Message, timeout: float, patience: float = 0.0) -> Message:
        """Ask the worker that has the candidate loaded for something that is no call.

        Args:
            request: what to do.
            timeout: seconds to wait.
            patience: seconds to wait while compilers are at work.

        Raises:
            WorkerDiedError: it ended or fell silent; the next `load` starts another.
        """
        assert self._worker is not None, "load comes first"
        try:
            return self._worker.ask(request, timeout, request["op"], patience)
        except WorkerDiedError as dead:
            self.renew()
            self._died(dead)
            raise

    def make(self, instance: str, dtype: str) -> ErrorInfo | None:
        """Have the worker make another instance of the model, for `Manner.instance`; the error that comes of it.

        Args:
            instance: one of `protocol.INSTANCES`.
            dtype: the type of the inputs that it is to be called on.

        Raises:
            WorkerDiedError: it ended or fell silent meanwhile.
        """
        seconds = self.limits.first
        reply = self.ask({"op": "make", "instance": instance, "dtype": dtype}, seconds, self.limits.build)
        return None if reply["outcome"] == "made" else replies.error(reply, "make")

    def let_go(self) -> None:
        """Let go of all instances but the first.

        Raises:
            WorkerDiedError: as above.
        """
        self.ask({"op": "let go"}, self.limits.call)

    def end(self, status: int, seconds: float) -> Death:
        """Have the worker end as a program does that has come to its end; how it did, or that it does not.

        Args:
            status: the exit code that it is to have.
            seconds: that it may take.
        """
        assert isinstance(self._worker, WorkerProcess), "one of its own, that has the candidate loaded"
        try:
            self._worker.ask({"op": "end", "status": status}, seconds, "the end")
        except WorkerDiedError as dead:
            return replace(dead.death, cause=f"it goes on for {seconds:g} s") if dead.timed_out else dead.death
        finally:
            self.renew()
        return Death("it answers instead", "the end")

    def forget(self) -> None:
        """Let go of all kept results."""
        if self._worker is not None:
            with contextlib.suppress(WorkerDiedError):
                self._worker.ask({"op": "forget"}, self.limits.call, "forget")

    def free_bytes(self) -> int | None:
        """Bytes that can be had where inputs are made, those of the slots among them; None where that is not known."""
        if self.home == "cpu":
            free = available_bytes()
            return None if free is None else free + self.memory.capacity
        if self._worker is not None:
            with contextlib.suppress(WorkerDiedError):
                self.ask({"op": "rest"}, self.limits.call)  # what its pool holds can be had, too
        with self.watched():
            torch.cuda.empty_cache()
            return torch.cuda.mem_get_info(self.device)[0] + self.memory.capacity

    def resident_bytes(self) -> int | None:
        """Memory of the worker's process that is its own, without the slots; None where the system does not say."""
        return None if self._worker is None else self._worker.resident_bytes()

    def holdings(self) -> dict[str, int]:
        """How many open files and threads the worker has; empty where the system does not say."""
        return {} if self._worker is None else self._worker.holdings()

    def renew(self) -> None:
        """End the present worker, so that the next call meets a fresh one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def close(self) -> None:
        """End all workers and give their memory back."""
        self.renew()
        # A card that is gone gives nothing back: who asks it waits for ever.
        if not self.borrows and not self.gone:
            with contextlib.suppress(GpuGoneError), self.watched():
                self.memory.close()

    def on(self, device: str) -> Runner:
        """A runner of the same candidate on another device, with slots and workers of its own."""
        slots = Slots(device, pinned=self.home == "cpu")
        return replace(self, device=device, slots=slots, borrows=False, deaths=0, _deaths_in_a_row=0, _worker=None)

    @property
    def loaded(self) -> bool:
        """Whether a worker has the candidate loaded."""
        return self._worker is not None

    @property
    def on_gpu(self) -> bool:
        """Whether the candidate sees inputs on a GPU."""
        return self.device != "cpu"

    @property
    def gone(self) -> str:
        """Since when its GPU does not answer, in words; "" while it does, and on a CPU."""
        return self.gpu.gone if self.on_gpu else ""

    @property
    def memory(self) -> Slots:
        """Where inputs and results lie."""
        assert self.slots is not None, "made in __post_init__"
        return self.slots

    @property
    def home(self) -> str:
        """Where the judging process makes inputs and finds results, as torch names it; known after the first `load`."""
        return self.memory.home

    @property
    def tag(self) -> str:
        """Eight hex digits of the candidate's path and content: its build folder and module name carry them."""
        content = self.candidate.read_bytes() if self.candidate.is_file() else b""
        return hashlib.sha256(os.fsencode(self.candidate) + b"\0" + content).hexdigest()[:8]

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of its processes: where extensions are built."""
        return {"TORCH_EXTENSIONS_DIR": str(self.build_folder()), CACHE_VARIABLE: str(self.cache)}

    def _start(self) -> WorkerProcess | WorkerInside:
        worker = self._process()  # a nursery that cannot fork says nothing about a card
        if not self.on_gpu:
            return worker
        try:
            with self.watched():
                goes_on = self.memory.share(lambda request: worker.ask(request, self.limits.start, "start"))
            if not goes_on:
                worker.close()
                worker = self._process()
            self._reach(worker, self.limits.start)
        except WorkerDiedError as silent:
            worker.close()
            self.gpu.lost(f"{self.candidate.name} was to be loaded (of a fresh process: {silent.death.cause})")
            self.gpu.insist()
        except BaseException:
            worker.close()
            raise
        return worker

    def _reach(self, worker: WorkerProcess | WorkerInside, seconds: float) -> None:
        """Have a worker make its context, which takes seconds: no call is to pay for it.

        Raises:
            WorkerDiedError: it cannot.
            OutOfMemoryError: it could, if there were memory.
        """
        reply = worker.ask({"op": "reach", "place": None, "device": self.device}, seconds, "start")
        if reply["outcome"] == "out of memory":
            raise OutOfMemoryError(str(reply.get("text")))

    def _process(self) -> WorkerProcess | WorkerInside:
        if not self.isolated:
            return WorkerInside(self.memory.fds)
        return WorkerProcess(self.nursery, self.memory.fds, self.variables, self.limits.start)

    def watched(self) -> contextlib.AbstractContextManager[None]:
        """For calls of the judging process itself on the card; see `Gpu.watched`."""
        return self.gpu.watched(f"{self.candidate.name} was last called") if self.on_gpu else contextlib.nullcontext()

    def _died(self, dead: WorkerDiedError) -> None:
        """Count a death; where it may have taken the card along, see whether a fresh process reaches it."""
        self.deaths += 1
        self._deaths_in_a_row += 1
        if not self.on_gpu or not (dead.timed_out or self._deaths_in_a_row % _DEATHS_IN_A_ROW == 0):
            return
        worker = None
        try:
            worker = self._process()
            self._reach(worker, ANSWER_SECONDS)
        except WorkerDiedError as silent:
            said = f"{dead.death.cause}; of a fresh process: {silent.death.cause}"
            self.gpu.lost(f"{self.candidate.name} was last called ({said})")
        except OutOfMemoryError:
            return  # it answers
        finally:
            if worker is not None:
                worker.close()

    def build_folder(self) -> Path:
        """Where the candidate's extensions are built; made where it is not there."""
        folder = self.cache / "candidates" / self.tag
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def _build_lock(self) -> Iterator[None]:
        """One process at a time loads (and so builds) this candidate; locks that a killed build left are removed."""
        folder = self.build_folder()
        with filelock.FileLock(folder / "kernelproof.lock", timeout=self.limits.build):
            for stale in folder.glob("*/lock"):
                if stale.is_file():
                    stale.unlink(missing_ok=True)
            yield

    def _aside(self, storage: torch.Tensor) -> Message:
        """Where something lies that the worker needs beside the input."""
        return protocol.to_message(self.memory.put(slots.ASIDE, storage))

    def _view_aside(self, given: Input) -> Message:
        """A second input, as a worker is told of it."""
        return protocol.to_message(_view(given, self.memory.put(slots.ASIDE, given.storage)))

    def _ask(self, request: Message, timeout: float, given: Input, patience: float = 0.0) -> Observation:
        assert self._worker is not None
        began = time.monotonic()
        try:
            reply = self._worker.ask(request, timeout, request["op"], patience)
            seen = self._seen(reply, request, given, time.monotonic() - began)
        except WorkerDiedError as dead:
            self.renew()
            self._died(dead)
            outcome = Outcome.TIMED_OUT if dead.timed_out else Outcome.DIED
            return Observation(outcome, death=dead.death, seconds=time.monotonic() - began)
        finally:
            self.called += time.monotonic() - began
        self._deaths_in_a_row = 0
        return seen

    def _seen(self, reply: Message, request: Message, given: Input, seconds: float) -> Observation:
        said = replies.answer(reply, request["op"])
        if isinstance(said, ErrorInfo):
            return Observation(Outcome.RAISED, error=said, seconds=seconds)
        output = None
        if request["output"] is not None and said.shape == given.shape and said.dtype == given.dtype:
            with self.watched():
                raw = self.memory.found(Place(**request["output"]))
                raw = raw if len(raw) >= _KEPT_APART else raw.clone()
            output = raw.view(given.logical.dtype).view(given.shape)
        return Observation(Outcome.RETURNED, meta=said, output=output, device=self.device, seconds=seconds)


def _view(given: Input, place: Place) -> View:
    """An input in a slot, as a worker is told of it."""
    return View(
        place,
        given.dtype,
        given.shape,
        given.geometry.strides,
        given.geometry.offset,
        given.negated,
        given.requires_grad,
    )
