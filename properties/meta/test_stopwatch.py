"""The worker's stopwatch: what belongs to a time and what does not, on a CPU and, with a GPU of straw, on a GPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from properties import stopwatch
from properties.stopwatch import Stopwatch


def test_a_time_is_that_of_the_calls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 10000, 7))
    monkeypatch.setattr(stopwatch, "_now", lambda: next(ticks))
    watch = Stopwatch(torch.neg, [torch.ones(3)])
    assert watch.method == "calls"
    assert watch.run(5) == 5 * 7


def test_each_call_gives_a_fresh_result_and_the_last_is_kept_until_it_is_let_go() -> None:
    made: list[weakref.ref[torch.Tensor]] = []

    def model(x: torch.Tensor) -> torch.Tensor:
        assert all(each() is None for each in made), "the result before is gone when the next call starts"
        result = x + 1
        made.append(weakref.ref(result))
        return result

    watch = Stopwatch(model, [torch.zeros(2)])
    watch.run(3)
    assert made[-1]() is watch.results[0]
    watch.let_go()
    assert made[-1]() is None


def test_copies_of_an_input_follow_it_when_they_are_told_to() -> None:
    source = torch.zeros(4, 2)
    copies = [torch.zeros(2, 4).t() for _ in range(2)]
    watch = Stopwatch(torch.neg, copies[:1], source)
    watch._inputs = copies  # several would be captured, which takes a GPU
    source.copy_(torch.arange(8.0).view(4, 2))
    watch.renew()
    assert all(torch.equal(each, source) for each in copies)
    Stopwatch(torch.neg, [source]).renew()
    assert source[3, 1] == 7


class StrawGpu:
    """A stream that runs what is enqueued when it is synchronized; its clock counts kernels as 10 us each."""

    def __init__(self) -> None:
        self.queue: list[Callable[[], None]] = []
        self.captured: list[Callable[[], None]] | None = None
        self.now, self.waits = 0.0, list[int]()
        self.fails_in_capture = self.loses_kernels = False

    def kernel(self, work: Callable[[], object]) -> None:
        """Launch: nothing happens yet."""

        def run() -> None:
            self.now += 10e-3  # ms
            work()

        if self.captured is not None and self.fails_in_capture:
            raise RuntimeError("operation not permitted when stream is capturing")
        if self.captured is not None and self.loses_kernels:
            return
        (self.queue if self.captured is None else self.captured).append(run)

    def synchronize(self) -> None:
        """Run what is enqueued."""
        for each in self.queue:
            each()
        self.queue.clear()

    def record(self, event: SimpleNamespace) -> None:
        """Put the time into the event when the stream gets there."""
        self.queue.append(lambda: setattr(event, "time", self.now))

    def graph(self) -> SimpleNamespace:
        """An empty graph."""
        return SimpleNamespace(kernels=[])

    def capture(self, graph: SimpleNamespace) -> Capture:
        """Kernels launched within go to the graph."""
        return Capture(self, graph)

    def replay(self, graph: SimpleNamespace) -> None:
        """Enqueue the graph's kernels."""
        self.queue.extend(graph.kernels)


class Capture:
    """The context in which kernels are captured."""

    def __init__(self, gpu: StrawGpu, graph: SimpleNamespace) -> None:
        self._gpu, self._graph = gpu, graph

    def __enter__(self) -> None:
        self._gpu.captured = self._graph.kernels

    def __exit__(self, *_: object) -> None:
        self._gpu.captured = None


class OnGpu(torch.Tensor):
    """A CPU tensor that says it is on a GPU."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where it claims to be."""
        return torch.device("cuda:0")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> StrawGpu:
    straw = StrawGpu()
    for name, value in {
        "_Event": lambda **_: SimpleNamespace(time=None),
        "_record": straw.record,
        "_elapsed": lambda begin, end: end.time - begin.time,
        "_synchronize": straw.synchronize,
        "_sleep": straw.waits.append,
        "_Graph": straw.graph,
        "_capture": straw.capture,
        "_replay": straw.replay,
    }.items():
        monkeypatch.setattr(stopwatch, name, value)
    return straw


def model_on(gpu: StrawGpu) -> Callable[[torch.Tensor], torch.Tensor]:
    """A model of one kernel that negates; launching it returns at once."""

    def model(x: torch.Tensor) -> torch.Tensor:
        plain = x.as_subclass(torch.Tensor)
        y = torch.zeros_like(plain)
        gpu.kernel(lambda: torch.neg(plain, out=y))
        return y

    return model


def inputs(count: int) -> list[torch.Tensor]:
    return [torch.full((4,), float(index + 1)).as_subclass(OnGpu) for index in range(count)]


def test_a_launch_that_returns_at_once_is_timed_by_the_device(gpu: StrawGpu) -> None:
    watch = Stopwatch(model_on(gpu), inputs(1))
    assert watch.method == "events"
    assert watch.run(3) == pytest.approx(3 * 10_000, abs=1), "three kernels of 10 us, in nanoseconds"
    assert len(gpu.waits) == 1, "the host gets a head start"
    assert torch.equal(torch.as_tensor(watch.results[0]), torch.full((4,), -1.0))


def test_short_calls_are_captured_once_and_replayed(gpu: StrawGpu) -> None:
    watch = Stopwatch(model_on(gpu), inputs(5))
    assert (watch.method, watch.note) == ("graph", "")
    assert watch.run(2) == pytest.approx(2 * 5 * 10_000, abs=1)
    assert [float(torch.as_tensor(each)[0]) for each in watch.results] == [-1.0, -2.0, -3.0, -4.0, -5.0]
    watch.let_go()
    assert None not in watch.results, "a graph's results are its own"


def test_where_capture_fails_calls_are_launched_and_the_reason_is_told(gpu: StrawGpu) -> None:
    gpu.fails_in_capture = True
    watch = Stopwatch(model_on(gpu), inputs(5))
    assert watch.method == "launches"
    assert watch.note == "capture fails: RuntimeError: operation not permitted when stream is capturing"
    assert watch.run(2) == pytest.approx(2 * 5 * 10_000, abs=1)


def test_a_graph_whose_replay_writes_nothing_is_not_used(gpu: StrawGpu) -> None:
    gpu.loses_kernels = True
    watch = Stopwatch(model_on(gpu), inputs(5))
    assert (watch.method, watch.note) == ("launches", "a replay of the captured graph does not write the results")
