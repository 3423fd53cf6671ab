"""The graph property without a card: straw graphs that record PyTorch's operations and do them again.

A straw graph shares what matters with a CUDA graph: a replay does the operations of the capture, on the same memory,
and nothing of the Python around them. What it cannot show is what a driver refuses; `test_on_a_gpu` does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import engine, graphs, kill_matrix, worker_ways
from ..cases import parse
from ..examination import Examination
from ..findings import Kind
from ..l1_norm import L1_NORM
from ..limits import Limits
from ..process import Nursery
from ..runner import Runner
from ..subject import Subject
from .conftest import RIGHT

CASE = parse("shape=4x33,seed=26")
RECORDING: list[StrawGraph] = []
#: A function, its arguments by place and by name, and its result.
Operation = tuple[Callable[..., torch.Tensor], tuple[object, ...], dict[str, object], object]


class Recorder(TorchDispatchMode):
    """Notes every operation with its arguments and its result."""

    def __init__(self, found: list[Operation]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        self.found.append((func, args, kwargs or {}, result))
        return result


class StrawGraph:
    """As much of `torch.cuda.CUDAGraph` as a worker uses."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.recorder = Recorder(self.operations)

    def capture_begin(self) -> None:
        """From here on operations are recorded; done they are, too."""
        RECORDING.append(self)
        self.recorder.__enter__()  # type: ignore[no-untyped-call]

    def capture_end(self) -> None:
        """Up to here."""
        RECORDING.remove(self)
        self.recorder.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def replay(self) -> None:
        """Do them again, into the results that they had."""
        for func, args, kwargs, result in self.operations:
            again = func(*args, **kwargs)
            if isinstance(result, torch.Tensor) and again.data_ptr() != result.data_ptr():
                result.copy_(again)


@pytest.fixture(autouse=True)
def straws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of straw, streams that are none."""
    monkeypatch.setattr(worker_ways, "_CudaGraph", StrawGraph)
    monkeypatch.setattr(worker_ways, "_Stream", lambda _: None)
    monkeypatch.setattr(worker_ways, "_on_stream", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(worker_ways, "_synchronize", lambda _: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(RECORDING))


def judged(path: Path, nursery: Nursery, required: frozenset[str] = frozenset({"fp32", "graph"})) -> Examination:
    limits = Limits(60.0, 60.0, 20.0)
    runner = Runner(path, (), limits, nursery, path.parent / "cache", isolated=False)
    subject = Subject(path, "cpu", L1_NORM, False, required, limits, runner)
    try:
        assert subject.probe() is None, subject.broken
        return engine.replay(subject, graphs.GRAPH, CASE)
    finally:
        subject.close()


def written(folder: Path, body: str) -> Path:
    path = folder / "candidate.py"
    head = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    path.write_text(head + "".join(f"        {line}\n" for line in body.splitlines()), encoding="utf-8")
    return path


def test_a_right_program_passes(tmp_path: Path, nursery: Nursery) -> None:
    seen = judged(written(tmp_path, RIGHT), nursery)
    assert (seen.outcome, seen.examples, seen.findings) == ("passed", 1, ())


@pytest.mark.parametrize("name", ["graph_host_value", "graph_skips_upload", "graph_alternates_workspaces"])
def test_what_the_host_decided_at_the_capture_is_found(name: str, tmp_path: Path, nursery: Nursery) -> None:
    mutant = kill_matrix.read(kill_matrix.FOLDER / "mutants" / f"{name}.py")
    copy = tmp_path / "mutant.py"
    copy.write_text(mutant.path.read_text(encoding="utf-8"), encoding="utf-8")
    seen = judged(copy, nursery)
    assert seen.outcome == "failed"
    assert seen.findings[0].kind in mutant.kinds
    assert "CUDA graph" in seen.findings[0].text
    assert judged(copy, nursery, frozenset({"fp32"})).outcome == "reported"


def test_a_replay_that_gives_the_result_of_the_capture_is_named(tmp_path: Path, nursery: Nursery) -> None:
    body = """
if torch.cuda.is_current_stream_capturing():
    return self.y.clone()
self.y = x / x.abs().mean(1, keepdim=True)
return self.y.clone()
"""
    seen = judged(written(tmp_path, body.strip()), nursery)
    assert seen.findings[0].kind is Kind.STALE_RESULT
    assert "gives the result of the data before" in seen.findings[0].text


def test_what_no_replay_writes_is_seen(tmp_path: Path, nursery: Nursery) -> None:
    body = "y = x / x.abs().mean(1, keepdim=True)\nif torch.cuda.is_current_stream_capturing():\n    RECORDED.clear()"
    path = written(tmp_path, f"{body}\nreturn y")
    text = "from properties.meta import test_graphs\nclass Recorded:\n    def clear(self):\n"
    text += "        test_graphs.RECORDING[-1].operations.clear()\nRECORDED = Recorded()\n"
    path.write_text(text + path.read_text(encoding="utf-8"), encoding="utf-8")
    seen = judged(path, nursery)
    assert seen.findings[0].kind is Kind.NOT_WRITTEN
    assert seen.findings[0].text.startswith("replayed in a CUDA graph on the data that it was captured with")


@pytest.mark.parametrize(("required", "outcome"), [({"fp32"}, "passed"), ({"fp32", "graph"}, "failed")])
def test_one_that_cannot_be_captured_says_so(
    required: set[str], outcome: str, tmp_path: Path, nursery: Nursery
) -> None:
    body = f"if torch.cuda.is_current_stream_capturing():\n    raise RuntimeError('no capture, please')\n{RIGHT}"
    seen = judged(written(tmp_path, body), nursery, frozenset(required))
    words = "cannot be captured in a CUDA graph: RuntimeError: no capture, please"
    if outcome == "failed":
        assert (seen.outcome, seen.findings[0].kind) == ("failed", Kind.UNSUPPORTED)
        assert seen.findings[0].text.startswith(words)
    else:
        assert (seen.findings, seen.unsupported) == ((), 1)
        assert [note for note in seen.notes if note.startswith(words)]
