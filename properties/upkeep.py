"""Keep a process that has the candidate loaded, and replace it when it dies.

`Upkeep` belongs to one candidate on one target. It starts a worker, has it load the candidate, one build at a time, and
counts deaths; where one may have taken the GPU along, it sees whether the GPU still answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import filelock

from kernels.folder import VARIABLE as CACHE_VARIABLE

from . import build_place, replies
from .build_place import NoPlaceError
from .gpu import ANSWER_SECONDS, Gpu, GpuGoneError
from .limits import Limits
from .memory import OutOfMemoryError
from .process import Nursery, WorkerDiedError, WorkerInside, WorkerProcess
from .protocol import Message
from .replies import LoadFailure
from .slots import Slots

#: Workers that died one behind the other, without an answered call between, after which the GPU is asked whether it
#: is still there.
_DEATHS_IN_A_ROW = 3
#: A candidate may put there what it likes, and a later worker, or run, finds it.
_SPOILT = "the folder of its builds cannot be used, remove what is there"
#: What is said of a source in another language, whose first line no Python could make sense of.
_NO_PYTHON = (
    "is not a Python file ({}); a candidate is a .py file that defines ModelNew and builds its source, for example "
    "with torch.utils.cpp_extension.load_inline"
)
#: Where all candidates' builds lie, in the cache folder.
_BUILDS = "candidates"


@dataclass
class Upkeep:
    """Keeps a worker for one candidate.

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
        taken: the class that is run, known after the first `load`: ``Model`` in a file without ``ModelNew``.
        replaced: what of libraries its import, or the making of its model, has replaced; known then, too.
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
    taken: str = ""
    replaced: tuple[str, ...] = ()
    _deaths_in_a_row: int = 0
    _answered: frozenset[str] = frozenset()
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
            NoPlaceError: nothing can be built, whatever the candidate is.
        """
        if self._worker is not None:
            return None
        if self.gone:
            raise GpuGoneError(self.gone)
        if self.candidate.suffix not in importlib.machinery.SOURCE_SUFFIXES:
            return LoadFailure(_NO_PYTHON.format(self.candidate.suffix or "no suffix"))
        try:
            self.cache.joinpath(_BUILDS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoPlaceError(build_place.words(error, self.cache)) from None
        try:
            self.build_folder()
        except OSError as spoilt:
            return self._spoilt(spoilt)
        try:
            worker = self._start()
        except WorkerDiedError as dead:
            return LoadFailure(f"no process to load it in: {dead.death.cause}", dead.death)
        try:
            with self.build_lock():
                reply = worker.ask(self.what(), self.limits.first, "load", self.limits.build)
            failure = None if reply["outcome"] == "loaded" else replies.load_failure(reply)
        except WorkerDiedError as dead:
            worker.close()
            self._died(dead)
            self.insist_on_room("\n".join(dead.death.log), broken=not dead.timed_out)
            return replies.death_while_loading(dead)
        except filelock.Timeout as busy:
            worker.close()
            return LoadFailure(f"another process has been building it for {self.limits.build:g} s: {busy.lock_file}")
        except OSError as spoilt:
            worker.close()
            return self._spoilt(spoilt)
        if failure is not None:
            worker.close()
            self.insist_on_room("\n".join((failure.text, *failure.details)), broken=failure.building)
            return failure
        self._worker, self.taken = worker, str(reply.get("model", self.model))
        self.replaced = tuple(reply["replaced"])
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

    def insist_on_room(self, text: str, *, broken: bool) -> None:
        """See whether there is room for builds, after one has failed or may have.

        Args:
            text: what was said.
            broken: whether a build has failed, or its end may be that of one, whatever was said.

        Raises:
            NoPlaceError: there is none, and the candidate does not answer for it.
        """
        believed = build_place.said(text)
        if (believed or broken) and (wrong := build_place.wrong_with((self.build_folder(),), believed=believed)):
            raise NoPlaceError(wrong)

    def _spoilt(self, error: OSError) -> LoadFailure:
        """What the folder of its builds is, where it cannot be used.

        Raises:
            NoPlaceError: it is the disk that cannot.
        """
        folder = self.cache / _BUILDS / self.tag
        if build_place.of_the_disk(error, folder):
            raise NoPlaceError(build_place.words(error, folder)) from None
        return LoadFailure(f"{_SPOILT}: {error}")

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
        folder = self.cache / _BUILDS / self.tag
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def build_lock(self) -> Iterator[None]:
        """One process at a time loads (and so builds) this candidate; locks that a killed build left are removed."""
        folder = self.build_folder()
        with filelock.FileLock(folder / "kernelproof.lock", timeout=self.limits.build):
            for stale in folder.glob("*/lock"):
                if stale.is_file():
                    stale.unlink(missing_ok=True)
            yield
