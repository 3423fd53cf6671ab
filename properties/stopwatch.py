"""The worker's stopwatch: how long a model takes on a tensor, and nothing else.

What is needed of torch and of the clock is bound when this module is imported, which is before any candidate is: a
candidate that patches either patches only itself. Results are fresh in every call.

- On a CPU a time is the wall time of calls, and of letting go of the result before: work may hide there.
- On a GPU it is device time, between two events on the current stream, behind a wait that lets the host run ahead: the
  time of a launch neither hides a kernel nor counts as one.
- Calls too short for that come with several inputs that together do not fit the L2 cache. They are captured in one CUDA
  graph, results kept apart, and replayed; where capture fails, or misses work, they are launched one by one (`note`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

#: Times that a model is called before it is timed: the first call may build; on a GPU a pool then holds the memory.
_WARM_UP = {"cpu": 1, "cuda": 3}
#: GPU cycles of the wait in front of a timed sequence (0.5 ms at 2 GHz), and more for each call that is enqueued: an
#: eager call enqueues three kernels in about 30 us, a compiled one needs up to 100 us of Python.
_HEAD_START = 1_000_000
_CYCLES_A_CALL = 200_000
_LONGEST_WAIT = 100_000_000
#: What results are filled with to see whether a replay writes them: repeated, a NaN in every float format.
_MARK = 0x7F

Model = Callable[..., object]

_now = time.perf_counter_ns
_Tensor = torch.Tensor
_Event = torch.cuda.Event
_record = torch.cuda.Event.record
_elapsed: Callable[[torch.cuda.Event, torch.cuda.Event], float] = torch.cuda.Event.elapsed_time
_synchronize = torch.cuda.synchronize
_sleep: Callable[[int], None] = torch.cuda._sleep
_Graph = torch.cuda.CUDAGraph
_capture = torch.cuda.graph
_replay = torch.cuda.CUDAGraph.replay
_storage = torch.Tensor.untyped_storage
_view_storage = torch.Tensor.set_
_empty = torch.empty
_fill = torch.Tensor.fill_
_copy = torch.Tensor.copy_
_all = torch.Tensor.all


class Stopwatch:
    """A model on its inputs, warm and ready to be timed.

    Attributes:
        method: ``calls``, ``events``, ``graph`` or ``launches``.
        note: why a graph was not used where one was wanted.
        results: of the last run, one an input; None where it was let go.
    """

    def __init__(self, model: Model, inputs: list[torch.Tensor], source: torch.Tensor | None = None) -> None:
        """Warm the model up.

        Args:
            model: to be timed.
            inputs: that it is called on, one after the other.
            source: what they are copies of; None where they are what the judging process writes to.
        """
        self._model = model
        self._inputs = inputs
        self._source = source
        self._on_gpu = inputs[0].device.type == "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self.results: list[object] = [None] * len(inputs)
        self.method, self.note = ("events" if self._on_gpu else "calls"), ""
        for _ in range(_WARM_UP[inputs[0].device.type]):
            self._call_each()
        if self._on_gpu:
            _synchronize()
        if len(inputs) > 1:
            self._record_graph()

    def run(self, calls: int) -> int:
        """Nanoseconds that ``calls`` calls on each of the inputs take."""
        return self._run_on_gpu(calls) if self._on_gpu else self._run_on_cpu(calls)

    def let_go(self) -> None:
        """Drop the results; those of a graph belong to it and stay."""
        if self._graph is None:
            self.results = [None] * len(self._inputs)

    def renew(self) -> None:
        """Have every input hold what its source holds now; the results stay those of the values before."""
        if self._source is None:
            return
        for each in self._inputs:
            _copy(each, self._source)
        if self._on_gpu:
            _synchronize()

    def _call_each(self) -> None:
        for index, each in enumerate(self._inputs):
            self.results[index] = None
            self.results[index] = self._model(each)

    def _run_on_cpu(self, calls: int) -> int:
        spent = 0
        for _ in range(calls):
            for index, each in enumerate(self._inputs):
                begin = _now()
                self.results[index] = None
                result = self._model(each)
                spent += _now() - begin
                self.results[index] = result
                del result
        return spent

    def _run_on_gpu(self, calls: int) -> int:
        begin, end = _Event(enable_timing=True), _Event(enable_timing=True)
        enqueued = calls if self._graph else calls * len(self._inputs)
        _synchronize()
        _sleep(min(_HEAD_START + enqueued * _CYCLES_A_CALL, _LONGEST_WAIT))
        _record(begin)
        for _ in range(calls):
            if self._graph is not None:
                _replay(self._graph)
            else:
                self._call_each()
        _record(end)
        _synchronize()
        return round(_elapsed(begin, end) * 1e6)

    def _record_graph(self) -> None:
        """Capture one call on each input; the stopwatch launches one by one where that cannot be done."""
        graph, self.method = _Graph(), "launches"
        results: list[object] = []
        try:
            with _capture(graph):
                results.extend(self._model(each) for each in self._inputs)
            _synchronize()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
            self.note = f"capture fails: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            return
        ends = [_bytes(result) for result in (results[0], results[-1])]
        for each in ends:
            _fill(each, _MARK)
        _replay(graph)
        _synchronize()
        if any(bool(_all(each == _MARK)) for each in ends if each.numel()):
            self.note = "a replay of the captured graph does not write the results"
            return
        self._graph, self.results, self.method = graph, results, "graph"


def _bytes(result: object) -> torch.Tensor:
    """The memory of a result as uint8; empty for what is no tensor."""
    if not isinstance(result, _Tensor) or result.layout is not torch.strided:
        return _empty(0, dtype=torch.uint8)
    raw = _empty(0, dtype=torch.uint8, device=result.device)
    return _view_storage(raw, _storage(result))
