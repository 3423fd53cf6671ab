"""Run a candidate on inputs and say what was seen; survive whatever it does.

A `Runner` belongs to one candidate on one target. It puts inputs and results into its slots, asks the worker that
`Upkeep` keeps for it, and turns every reply or death into an `Observation`. It judges nothing.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

import torch

from . import protocol, replies, slots
from .inputs import Input
from .manner import PLAIN, Manner, kinds
from .memory import available_bytes
from .observation import Damage, Death, Observation, Outcome
from .process import WorkerDiedError, WorkerProcess
from .protocol import ErrorInfo, Message, Place, View
from .slots import Slots
from .upkeep import Upkeep

#: A result from this size on is looked at where it lies, and holds until the next call: a copy might not fit.
_KEPT_APART = 1 << 30


@dataclass
class Runner(Upkeep):
    """Runs one candidate.

    Attributes:
        called: seconds that calls have taken so far.
    """

    called: float = 0.0
    _hung: bool = False
    _put_aside: Place | None = None

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
                "crossed": manner.crossed,
                "between": manner.between,
                "beside": None if manner.beside is None else self._view_aside(manner.beside),
                "way": manner.way,
                "busy": manner.busy,
                "stand_in": manner.stand_in,
                "setting": manner.setting,
                "sealed": manner.sealed,
                "whole": manner.whole,
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

    def holdings(self, collected: bool = False) -> dict[str, int]:
        """How many open files, threads, tensors and more the worker has; what nobody says lacks.

        Args:
            collected: whether tensors and other objects count no more which only Python's collector can find.
        """
        found = {} if self._worker is None else self._worker.holdings()
        if found:
            with contextlib.suppress(WorkerDiedError):
                reply = self.ask({"op": "count", "collected": collected}, self.limits.first)
                found |= {name: reply[name] for name in ("tensors", "objects") if isinstance(reply.get(name), int)}
        return found

    def on(self, device: str) -> Runner:
        """A runner of the same candidate on another device, with slots and workers of its own."""
        slots = Slots(device, pinned=self.home == "cpu")
        return replace(self, device=device, slots=slots, borrows=False, deaths=0, _deaths_in_a_row=0, _worker=None)

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
