"""The worker: a plain child process, forked by `nursery`, that runs a candidate and holds no expected value.

It reads requests (`protocol`), calls the candidate on tensors over memory that the judging process owns, copies the
result out when asked, and says how the call ended. What it calls of torch by itself after the candidate was imported is
bound before, so that a candidate which patches torch patches only itself; what torch and the driver's part look up when
they are called is not. A worker may die at any time: nothing of the verdict lives here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable
from json import dumps, loads
from pathlib import Path

import torch

from . import protocol, worker_arithmetic, worker_gpu, worker_ways
from .device_memory import IpcError, OpenedSlot, PinnedSlot
from .memory import GuardedMap
from .protocol import BESIDE, Message, OutputMeta, Place, View, Way
from .shared_memory import SharedMemory
from .stopwatch import Stopwatch
from .worker_facts import InputWatch, count
from .worker_lent import Lent
from .worker_library import CodeWatch
from .worker_models import Models
from .worker_output import describe_error, describe_output, part_of, readable, write_over
from .worker_watch import ProcessWatch
from .worker_ways import Busy, Captured

_copy = torch.Tensor.copy_
_detach, _mul = torch.Tensor.detach, torch.Tensor.mul
_view_dtype = torch.Tensor.view
_as_strided = torch.Tensor.as_strided
_storage = torch.Tensor.untyped_storage
_new_storage_view = torch.Tensor.set_
_negative_view = torch._neg_view
_address = torch.Tensor.data_ptr
_empty = torch.empty
_Tensor = torch.Tensor
_synchronize = torch.cuda.synchronize
_empty_cache = torch.cuda.empty_cache
_cuda_in_use: Callable[[], bool] = torch.cuda.is_initialized
_no_grad = torch.no_grad
_clone = torch.Tensor.clone
_compile = torch.compile
_Stream = torch.cuda.Stream
_on_stream = torch.cuda.stream
_replace = dataclasses.replace
_autocast = torch.autocast
_bfloat16 = torch.bfloat16
_grad = torch.autograd.grad


class Session:
    """The candidate of one worker and the results it was asked to keep."""

    def __init__(self, slot_fds: list[int]) -> None:
        self._fds = slot_fds
        self._maps: dict[int, GuardedMap | OpenedSlot | PinnedSlot] = {}
        self._models = Models()
        self._kept: dict[str, object] = {}
        self._compile_mode = ""
        self._stopwatch: Stopwatch | None = None
        self._shared: dict[str, SharedMemory] = {}
        self._captured: Captured | None = None
        self._busy: dict[str, Busy] = {}
        self._modes: ProcessWatch | None = None
        self._code: CodeWatch | None = None
        self._last: tuple[View, torch.Tensor, tuple[int, int]] | None = None

    def handle(self, request: Message) -> Message:
        """Do what one request asks for; the candidate's exceptions become part of the reply."""
        operations: dict[str, Callable[[Message], Message]] = {
            "reach": self._reach,
            "load": self._load,
            "make": self._make,
            "let go": self._let_go,
            "call": self._call,
            "collect": self._collect,
            "forget": self._forget,
            "prepare": self._prepare,
            "time": self._time,
            "renew": self._renew,
            "rest": self._rest,
            "count": lambda asked: {"outcome": "counted", **count(asked["collected"])},
        }
        return operations[request["op"]](request)

    def _reach(self, request: Message) -> Message:
        """Whether this process reaches its device, and a slot there if one is named: the slot's first byte."""
        try:
            if request["place"] is None:
                return {"outcome": "reached", "byte": worker_gpu.reach(request["device"])}
            return {"outcome": "reached", "byte": int(self._bytes(Place(**request["place"]))[0])}
        except IpcError as error:
            return {"outcome": "out of reach", "text": str(error)}
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            return {"outcome": "out of memory", "text": str(error).splitlines()[0]}

    def _load(self, request: Message) -> Message:
        before, code = ProcessWatch(), CodeWatch()
        reply = self._models.load(request)
        if reply["outcome"] == "loaded":
            reply["replaced"] = (*before.replaced(), *code.changes())
            self._compile_mode = request["compile"]
            self._modes, self._code = ProcessWatch(), CodeWatch()
        return reply

    def _make(self, request: Message) -> Message:
        reply = self._models.make(request["instance"], getattr(torch, request["dtype"]))
        self._modes, self._code = ProcessWatch(), CodeWatch()  # what is set where a model is made counts as part of it
        return reply

    def _let_go(self, _: Message) -> Message:
        self._last = None
        self._models.let_go()
        return {"outcome": "gone"}

    def _call(self, request: Message) -> Message:
        view = protocol.view_from(request["view"])
        tensor, span = self._same_tensor(view)
        device = tensor.device
        on_gpu = device.type == "cuda"
        side = _on_stream(_Stream(device)) if request["side"] else contextlib.nullcontext()
        narrow = _autocast(device.type, _bfloat16) if request["autocast"] else contextlib.nullcontext()
        try:
            with side, narrow:
                # Opened first: that may wait for all that is queued.
                late = None if request["late"] is None else self._bytes(Place(**request["late"]))
                beside = None if request["beside"] is None else self._tensor(protocol.view_from(request["beside"]))[0]
                if request["busy"]:
                    self._keep_busy(device)
                if on_gpu:
                    worker_gpu.make_current()
                    self._shared_memory(device).fill()
                    worker_gpu.poison(math.prod(view.shape) * tensor.element_size(), device)
                if late is not None:
                    self._produce_late(view.place, late)
                memory = self._maps.get(view.place.slot) if request["sealed"] else None
                with memory.sealed() if isinstance(memory, GuardedMap) else contextlib.nullcontext():
                    result, changes = self._watched(request, tensor, beside)
                flows = False
                if request["inflow"] is not None and isinstance(result, _Tensor) and result.requires_grad:
                    flows = True
                    if request["between"]:
                        self._models.first(_mul(_detach(tensor), 3))
                    result = self._gradient(result, tensor, Place(**request["inflow"]), request["crossed"])
                pending = worker_gpu.pending_error(device) if on_gpu else ""
                meta = describe_output(result, span, worker_gpu.current() if on_gpu else 0, pending)
                inference = meta.inference and not (request["setting"] or request["stand_in"])
                meta = _replace(meta, flows=flows, inference=inference, **changes)
                if request["output"] is not None:
                    self._copy_out(result, meta, Place(**request["output"]), view)
                if on_gpu:
                    _synchronize(device)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            left = self._modes.changes() if self._modes is not None and _alone(request) else ()
            self._modes, self._last = ProcessWatch(), None  # what is left of this call is not the next one's doing
            return self._raised(error, device, left)
        if request["output"] is not None and request["way"] == Way.PLAIN and not flows:
            write_over(result, meta)
        if request["keep"]:
            self._kept[request["keep"]] = result if request["whole"] else part_of(result, meta)
        return {"outcome": "returned", "meta": protocol.to_message(meta)}

    def _watched(self, request: Message, tensor: torch.Tensor, beside: torch.Tensor | None) -> tuple[object, Message]:
        """What the model returns, and what has changed besides: the fields of `OutputMeta` that tell it."""
        shared_out = worker_arithmetic.are_at_work(math.prod(request["view"]["shape"]), tensor.device)
        before = InputWatch(tensor)
        # Inside autocast the modes are others than they were; what is left there is compared with what was there.
        modes = ProcessWatch() if request["autocast"] else self._modes
        calls, altered = 1, tuple[str, ...]()
        if request["way"] == Way.OFTEN:
            result, calls = worker_ways.often(self._models.first, tensor)
        elif request["way"] == Way.LENT:
            lent = Lent(tensor, request["stand_in"])
            result = lent.call(self._models.first)
            altered = lent.changes()
        else:
            result = self._result(request, tensor, beside)
        seen: Message = {"calls": calls, "altered": (*before.changes(), *altered), "written": before.written}
        if seen["altered"]:
            self._last = None
        if _alone(request) and modes is not None:
            looked_into = self._code.changes() if request["setting"] and self._code is not None else ()
            seen["left"] = (*modes.changes(shared_out), *looked_into)
        else:
            self._modes = ProcessWatch()  # what a compiler does is not the candidate's doing
        return result, seen

    def _result(self, request: Message, tensor: torch.Tensor, beside: torch.Tensor | None) -> object:
        """What the model returns when it is called in the way that is asked for."""
        model, way = self._models.of(request["instance"]), request["way"]
        if beside is not None:
            result, self._kept[BESIDE] = worker_ways.side_by_side(model, (tensor, beside))
            return result
        if way == Way.COMPILED:
            return worker_ways.compiled(model)(tensor)
        if way == Way.ELSEWHERE:
            return worker_ways.elsewhere(model, tensor)
        if way == Way.CAPTURED:
            self._captured = Captured(model, tensor)
        if way in (Way.CAPTURED, Way.REPLAYED):
            assert self._captured is not None, "capture comes before replay"
            return self._captured.replay()
        given = worker_ways.STAND_INS[request["stand_in"]](tensor) if request["stand_in"] else tensor
        if request["setting"]:
            with worker_ways.SETTINGS[request["setting"]](model):
                return model(given)
        return model(given)

    def _collect(self, request: Message) -> Message:
        result = self._kept[request["kept"]]
        view = protocol.view_from(request["view"])
        meta = describe_output(result, (0, 0))
        device = torch.device(view.place.device)
        try:
            self._copy_out(result, meta, Place(**request["output"]), view)
            if device.type == "cuda":
                _synchronize(device)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return self._raised(error, device)
        return {"outcome": "returned", "meta": protocol.to_message(meta)}

    def _raised(self, error: BaseException, device: torch.device, left: tuple[str, ...] = ()) -> Message:
        """The reply for an exception of the candidate's, or of what it left behind; ``left`` is what it has changed."""
        lost = device.type == "cuda" and worker_gpu.lost(device)
        told = _replace(describe_error(error, self._models.path), left=left)
        return {"outcome": "raised", "error": protocol.to_message(told), "device_lost": lost}

    def _forget(self, _: Message) -> Message:
        self._captured = None
        self._kept.clear()
        return {"outcome": "forgotten"}

    def _prepare(self, request: Message) -> Message:
        """Make a stopwatch for one input, or for that many copies of it; the first call is made, which may build."""
        self._rest({})
        view = protocol.view_from(request["view"])
        model = self._models.first
        try:
            if self._compile_mode:
                worker_ways.forget_compiled()
                model = _compile(model, mode=self._compile_mode, dynamic=False, fullgraph=True)
            raw = self._bytes(view.place)
            pinned = view.place.device != "cpu" and not view.place.handle  # on the host: no place to time from
            shared = self._tensor(view, raw)[0]
            if request["buffers"] > 1 or pinned:
                copies = [self._tensor(view, _clone(raw))[0] for _ in range(request["buffers"])]
                self._stopwatch = Stopwatch(model, copies, shared)
            else:
                self._stopwatch = Stopwatch(model, [shared])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return {"outcome": "raised", "error": protocol.to_message(describe_error(error, self._models.path))}
        return {"outcome": "prepared", "method": self._stopwatch.method, "note": self._stopwatch.note}

    def _time(self, request: Message) -> Message:
        """Time some calls; the results of the last are kept as ``timed-0``, ``timed-1``... if that is asked for."""
        assert self._stopwatch is not None, "prepare comes before time"
        self._kept.clear()
        try:
            spent = self._stopwatch.run(request["calls"])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return {"outcome": "raised", "error": protocol.to_message(describe_error(error, self._models.path))}
        if request["keep"]:
            self._kept.update({f"timed-{index}": result for index, result in enumerate(self._stopwatch.results)})
        else:
            self._stopwatch.let_go()
        return {"outcome": "timed", "nanoseconds": spent}

    def _renew(self, _: Message) -> Message:
        """Take over what lies in the input's place now."""
        assert self._stopwatch is not None, "prepare comes before renew"
        self._stopwatch.renew()
        return {"outcome": "renewed"}

    def _rest(self, _: Message) -> Message:
        """Let go of results and inputs, and of the memory that torch's pool on a GPU holds for the next."""
        self._kept.clear()
        self._stopwatch = self._last = None
        if _cuda_in_use():
            _empty_cache()
        return {"outcome": "resting"}

    def _same_tensor(self, view: View) -> tuple[torch.Tensor, tuple[int, int]]:
        """The tensor of a view; the very object of the call before where that had the same: other data lie there now.

        Whoever remembers a result by the object that it was made of is then wrong, as with a caller who fills one
        tensor again and again.
        """
        if self._last is None or self._last[0] != view or view.requires_grad:
            self._last = (view, *self._tensor(view))
        return self._last[1:]

    def _tensor(self, view: View, raw: torch.Tensor | None = None) -> tuple[torch.Tensor, tuple[int, int]]:
        """The view as an ordinary tensor (no base, storage of exactly its bytes), and its storage's addresses.

        Args:
            view: what the tensor is to look like.
            raw: the bytes that it lies over; those of the view's place where none are given.
        """
        dtype: torch.dtype = getattr(torch, view.dtype)
        raw = self._bytes(view.place) if raw is None else raw
        tensor = _empty(0, dtype=dtype, device=raw.device)
        with _no_grad():
            _new_storage_view(tensor, _storage(raw), view.offset, view.shape, view.strides)
        if view.negated:
            tensor = _negative_view(tensor)
        if view.requires_grad:
            tensor.requires_grad_()
        start = _address(raw)
        return tensor, (start, start + view.place.nbytes)

    def _bytes(self, place: Place) -> torch.Tensor:
        known = self._maps.get(place.slot)
        if known is None or known.capacity != place.capacity or known.handle != place.handle:
            if known is not None:
                self._last = None
                known.close()
            known = self._maps[place.slot] = self._opened(place)
        return known.tensor(place.start, place.nbytes)

    def _opened(self, place: Place) -> GuardedMap | OpenedSlot | PinnedSlot:
        if place.handle:
            return OpenedSlot(place.handle, place.capacity, place.device)
        if place.device == "cpu":
            return GuardedMap(self._fds[place.slot], place.capacity)
        return PinnedSlot(self._fds[place.slot], place.capacity, place.device)

    def _shared_memory(self, device: torch.device) -> SharedMemory:
        name = str(device)
        if name not in self._shared:
            self._shared[name] = SharedMemory(device)
        return self._shared[name]

    def _keep_busy(self, device: torch.device) -> None:
        """Queue other work on a GPU."""
        name = str(device)
        if name not in self._busy:
            self._busy[name] = Busy(device)
        self._busy[name].start()

    def _produce_late(self, place: Place, source: torch.Tensor) -> None:
        """Enqueue, on the current stream, a wait and then the writing of the input: the host runs ahead of both."""
        now = self._bytes(place)
        worker_gpu.keep_waiting(place.device)
        _copy(now, source)

    def _gradient(self, result: torch.Tensor, given: torch.Tensor, place: Place, crossed: bool) -> object:
        """What flows back to the input when the bytes of a place are what flows into the result.

        Of a single element it is that one for all: what comes from a sum of the results. What is crossed lies with its
        first dimension innermost.
        """
        numbers, shape = _view_dtype(self._bytes(place), result.dtype), tuple(given.shape)
        strides = _rows(shape[::-1])[::-1] if crossed else _rows(shape)
        if len(numbers) == 1:
            strides = (0,) * len(shape)
        (flows_back,) = _grad((result,), (given,), (_as_strided(numbers, shape, strides),))
        return flows_back

    def _copy_out(self, result: object, meta: OutputMeta, place: Place, view: View) -> None:
        """Copy the values into a slot, if there are as many of the right type as were asked for."""
        if not isinstance(result, _Tensor) or meta.shape != view.shape or meta.dtype != view.dtype:
            return
        if place.nbytes == 0 or not readable(meta, view.place.device):
            return
        target = _as_strided(_view_dtype(self._bytes(place), getattr(torch, view.dtype)), view.shape, _rows(view.shape))
        with _no_grad():
            _copy(target, _detach(result))


def _alone(request: Message) -> bool:
    """Whether nothing but the model is at work in a call: no compiler, no graph, no second thread."""
    return request["way"] in (Way.PLAIN, Way.OFTEN, Way.LENT) and request["beside"] is None


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _die_first() -> None:
    """Where memory runs out, the system is to end a worker rather than the judging process (Linux, proc(5))."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def serve(request_fd: int, reply_fd: int, slot_fds: list[int]) -> int | None:
    """Answer requests until the other side closes its pipe: None then.

    Asked to end as a program of its caller's does, it answers no more: the exit code that this one is to have.
    """
    _die_first()
    session = Session(slot_fds)
    write = os.write
    with os.fdopen(request_fd, encoding="utf-8") as requests:
        for line in requests:
            request = loads(line)
            if request["op"] == "end":
                return int(request["status"])
            reply = (dumps({**session.handle(request), "number": request["number"]}) + "\n").encode()
            while reply:
                reply = reply[write(reply_fd, reply) :]
    return None
