"""Judging on a card: what a candidate does to it stays with the candidate, and what hides on an idle card is seen."""

from __future__ import annotations

import time

import pytest
import torch

from .. import concurrency, contract, engine, execution, graphs, histories, inputs, kill_matrix, slots
from ..cases import parse
from ..device_memory import DeviceSlot, IpcError
from ..examination import Examination, Property
from ..findings import Kind
from ..observation import Outcome
from ..profiles import Profile
from ..runner import Runner
from ..shared_memory import SharedMemory
from ..slots import Slots
from ..targets import machine
from ..trial import NotRunError, Trial
from .conftest import RIGHT, MakeRunner, MakeSubject

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu),
    pytest.mark.timeout(120),
]

QUICK = Profile("test", examples=10, long_examples=3, longest=1 << 17, shrink_seconds=8, deaths=12)
#: Cycles of a wait that nobody sees the end of: half an hour.
FOREVER = 1 << 42


def works(runner: Runner) -> bool:
    assert runner.load() is None
    given = inputs.build(parse("shape=3x34,seed=1"), runner.home)
    seen = runner.observe(given)
    expected = given.logical / given.logical.abs().mean(1, keepdim=True)
    return seen.output is not None and torch.allclose(seen.output, expected, rtol=1e-6, atol=0)


def examined(prop: Property, make: MakeSubject, body: str, pinned: bool = False, **kind: object) -> Examination:
    subject = make(body, slots=Slots("cuda:0", pinned), **kind)
    assert subject.probe() is None, subject.broken
    return engine.examine(subject, prop, QUICK, seed=1)


def test_a_hung_kernel_is_killed_within_the_limit_and_the_next_example_is_right(make_runner: MakeRunner) -> None:
    runner = make_runner(f"if x.shape[1] == 33: torch.cuda._sleep({FOREVER})\n{RIGHT}", call=2.0, slots=Slots("cuda:0"))
    assert works(runner)
    began = time.monotonic()
    seen = runner.observe(inputs.build(parse("shape=3x33"), runner.home))
    assert seen.outcome is Outcome.TIMED_OUT
    assert time.monotonic() - began < 20, "the limit, the end of a process with a kernel under way, and a new context"
    assert works(runner)
    assert not runner.gpu.gone


def test_a_poisoned_context_dies_with_its_process(make_runner: MakeRunner) -> None:
    assertion = "x.view(-1)[torch.tensor([1 << 40], device=x.device)].sum()"
    runner = make_runner(f"if x.shape[1] == 33: {assertion}\n{RIGHT}", slots=Slots("cuda:0"))
    assert works(runner)
    seen = runner.observe(inputs.build(parse("shape=3x33"), runner.home))
    assert seen.outcome is Outcome.DIED
    assert seen.death is not None
    assert "device-side assert" in seen.death.cause
    assert works(runner)


@pytest.mark.parametrize("pinned", [False, True], ids=["shared", "pinned"])
def test_right_is_right_and_damage_is_seen_in_either_memory(pinned: bool, make_subject: MakeSubject) -> None:
    assert examined(contract.LAYOUTS, make_subject, RIGHT, pinned).findings == ()
    damaging = examined(
        contract.SHAPES, make_subject, "x.div_(x.abs().mean(1, keepdim=True))\nreturn x.clone()", pinned
    )
    assert damaging.findings[0].kind is Kind.INPUT_MODIFIED
    outside = "x.as_strided((1,), (1,), x.storage_offset() - 1).fill_(0)\nreturn x / x.abs().mean(1, keepdim=True)"
    around = examined(contract.LAYOUTS, make_subject, f"if x.storage_offset():\n    {outside}\n{RIGHT}", pinned)
    assert around.findings[0].kind is Kind.OUT_OF_BOUNDS


def test_where_memory_cannot_be_shared_the_hosts_is_pinned(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(DeviceSlot):
        def place(self, storage: torch.Tensor, slack: int = 0) -> int:  # noqa: ARG002 - as DeviceSlot
            raise IpcError("cuIpcGetMemHandle: operation not supported")

    monkeypatch.setattr(slots, "DeviceSlot", Refused)
    runner = make_runner(RIGHT, slots=Slots("cuda:0"))
    assert works(runner)
    assert (runner.home, runner.memory.unshared) == ("cpu", "cuIpcGetMemHandle: operation not supported")


def test_what_does_not_fit_says_what_it_needs(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, slots=Slots("cuda:0"))
    assert subject.probe() is None
    case = parse("shape=32768x65535,values=positive")
    free = torch.cuda.mem_get_info()[0]
    ballast = torch.empty(free - (20 << 30), dtype=torch.uint8, device="cuda")
    with pytest.raises(NotRunError, match=r"^needs 32\.0 GiB on the GPU, have (19|20)\.\d GiB$"):
        Trial(subject, case).build(case)
    del ballast
    torch.cuda.empty_cache()


ON_A_STREAM = "s = torch.cuda.Stream()\n"
JOIN_BEFORE = "s.wait_stream(torch.cuda.current_stream())\n"
WORK = "with torch.cuda.stream(s):\n    y = x / x.abs().mean(1, keepdim=True)\n"
JOIN_AFTER = "torch.cuda.current_stream().wait_stream(s)\n"
ON_THE_USUAL_STREAM = "s = torch.cuda.default_stream()\n"


@pytest.mark.parametrize(
    ("body", "late", "stream"),
    [
        (RIGHT, "passed", "passed"),
        (f"torch.cuda.synchronize()\n{RIGHT}", "passed", "passed"),
        (f"{ON_A_STREAM}{JOIN_BEFORE}{WORK}{JOIN_AFTER}return y", "passed", "passed"),
        (f"{ON_THE_USUAL_STREAM}{WORK}return y", "passed", "reported"),
        (f"{ON_A_STREAM}{WORK}return y", "failed", "reported"),
        (f"{ON_A_STREAM}{WORK}{JOIN_AFTER}return y", "failed", "reported"),
        (f"{ON_A_STREAM}{JOIN_BEFORE}{WORK}return y", "failed", "reported"),
    ],
    ids=["usual", "waits for all", "joined", "default stream", "hidden", "not before", "not after"],
)
def test_a_stream_that_is_not_joined_is_found(body: str, late: str, stream: str, make_subject: MakeSubject) -> None:
    # On a busy card a stream that is not joined may be late behind an input that lies ready, too.
    said = {Kind.WRONG_STREAM, Kind.WRONG_VALUE} if late == "failed" else {Kind.WRONG_STREAM}
    for prop, outcome in ((execution.LATE, late), (execution.STREAM, stream)):
        seen = examined(prop, make_subject, body)
        # There it is plainly wrong, too.
        assert seen.outcome == outcome or (late, seen.outcome) == ("failed", "failed"), seen.findings
        assert {finding.kind for finding in seen.findings} <= said


def test_a_graph_of_a_right_program_is_replayed_rightly(make_subject: MakeSubject) -> None:
    seen = examined(graphs.GRAPH, make_subject, RIGHT, required=frozenset({"fp32", "graph"}))
    assert (seen.outcome, seen.findings, seen.unsupported) == ("passed", (), 0)
    assert seen.examples > len(graphs.GRAPH.pinned)


def test_what_cannot_be_captured_in_a_graph_is_told_in_words_and_the_next_case_is_right(
    make_subject: MakeSubject,
) -> None:
    body = "mean = x.abs().mean(1, keepdim=True)\nif float(mean.max()) < 0:\n    return x\nreturn x / mean"
    seen = examined(graphs.GRAPH, make_subject, body)
    assert (seen.outcome, seen.findings, seen.examples) == ("not-examined", (), 0)
    assert all(note.startswith("cannot be captured in a CUDA graph: ") for note in seen.notes)
    promised = examined(graphs.GRAPH, make_subject, body, required=frozenset({"fp32", "graph"}))
    assert (promised.outcome, promised.findings[0].kind) == ("failed", Kind.UNSUPPORTED)


@pytest.mark.parametrize("name", ["graph_host_value", "graph_skips_upload", "graph_alternates_workspaces"])
def test_a_graph_that_knows_too_much_of_its_capture_is_found(name: str, make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, slots=Slots("cuda:0"))
    subject.runner.candidate.write_bytes((kill_matrix.FOLDER / "mutants" / f"{name}.py").read_bytes())
    assert subject.probe() is None, subject.broken
    seen = engine.replay(subject, graphs.GRAPH, graphs.GRAPH.pinned[0])
    assert seen.outcome == "reported"
    assert "CUDA graph" in seen.findings[0].text


def test_two_threads_on_two_streams(make_subject: MakeSubject) -> None:
    promised = frozenset({"fp32", "threads"})
    assert examined(concurrency.THREADS, make_subject, RIGHT, required=promised).outcome == "passed"
    head = "KEPT = {}\ndef kept(x):\n    key = (x.shape, x.dtype)\n    return KEPT.setdefault(key, torch.empty_like(x))"
    body = "mean = x.abs().mean(1, keepdim=True)\nreturn x / kept(mean).copy_(mean)"
    assert examined(concurrency.THREADS, make_subject, body, head=head, required=promised).outcome == "failed"


def test_a_busy_card_changes_no_bits_of_a_right_program(make_subject: MakeSubject) -> None:
    promised = frozenset({"fp32", "determinism"})
    assert examined(histories.REPEATED, make_subject, RIGHT, required=promised).outcome == "passed"


def test_an_error_that_is_left_behind_is_found(make_subject: MakeSubject) -> None:
    leave = "torch.cuda.cudart().cudaHostRegister(0, 8, 0)"
    seen = examined(contract.SHAPES, make_subject, f"y = x / x.abs().mean(1, keepdim=True)\n{leave}\nreturn y")
    assert seen.findings[0].kind is Kind.PENDING_ERROR, seen.findings


def test_shared_memory_is_filled() -> None:
    memory = SharedMemory(torch.device("cuda:0"))
    assert memory.works
    memory.fill()
    torch.cuda.synchronize()


def test_what_is_wrong_anyway_is_not_blamed_on_a_stream(make_subject: MakeSubject) -> None:
    seen = examined(execution.LATE, make_subject, "return x / x.abs().sum(1, keepdim=True)")
    assert seen.findings[0].kind is Kind.WRONG_VALUE


def test_eager_touches_no_byte_outside(make_subject: MakeSubject) -> None:
    seen = examined(execution.MEMCHECK, make_subject, RIGHT)
    assert (seen.outcome, seen.not_run, seen.examples) == ("passed", {}, 1)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second GPU")
def test_a_candidate_that_changes_the_current_device_is_told(make_subject: MakeSubject) -> None:
    assert examined(execution.DEVICES, make_subject, RIGHT).outcome == "passed"
    changed = examined(execution.DEVICES, make_subject, f"torch.cuda.set_device(x.device)\n{RIGHT}")
    assert (changed.outcome, changed.findings[0].kind) == ("reported", Kind.STATE_LEAK)


@pytest.mark.skipif(torch.cuda.device_count() > 1, reason="there is a second GPU")
def test_a_missing_second_gpu_is_not_run_in_words(make_subject: MakeSubject) -> None:
    seen = examined(execution.DEVICES, make_subject, RIGHT)
    assert set(seen.not_run.values()) == {"needs a second GPU, have 1"}
    assert seen.examples == 0
