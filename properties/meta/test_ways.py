"""Ways of calling: what two threads disturb is handed out, what stands in for a tensor is what it is called."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable

import pytest
import torch

from .. import concurrency, contract, engine, frameworks, protocol, worker, worker_ways
from ..cases import parse
from ..examination import Examination, Property, run_case
from ..findings import Kind
from ..interface import REFUSALS
from .conftest import RIGHT, MakeSubject

ONE, TWO = torch.full((40, 30), 1.0), torch.full((40, 30), 2.0)


def examined(prop: Property, make: MakeSubject, body: str, head: str = "", *required: str) -> Examination:
    subject = make(body, head=head, required=frozenset({"fp32", *required}))
    assert subject.probe() is None, subject.broken
    return engine.replay(subject, prop, prop.pinned[0])


# ---- Two threads ----------------------------------------------------------------------------------------------------


def test_a_call_from_another_thread_gives_what_that_has_and_raises_what_that_raises() -> None:
    here = threading.get_ident()
    assert worker_ways.elsewhere(lambda _: threading.get_ident(), ONE) != here
    with pytest.raises(KeyError, match="NOT THERE"):
        worker_ways.elsewhere(lambda _: os.environ["NOT THERE"], ONE)


def test_each_thread_gets_the_result_of_its_own_input() -> None:
    first, second = worker_ways.side_by_side(lambda x: x + 1, (ONE, TWO))
    assert torch.equal(first, ONE + 1)  # type: ignore[arg-type]
    assert torch.equal(second, TWO + 1)  # type: ignore[arg-type]


def test_both_threads_are_inside_the_model_at_once() -> None:
    inside = threading.Barrier(2, timeout=10)

    def model(x: torch.Tensor) -> torch.Tensor:
        inside.wait()
        return x

    worker_ways.side_by_side(model, (ONE, TWO))


def test_an_error_in_one_thread_is_raised_and_ends_both() -> None:
    calls: list[float] = []

    def model(x: torch.Tensor) -> torch.Tensor:
        calls.append(float(x[0, 0]))
        if calls.count(2.0) == 3:
            raise KeyError("the third call")
        return x

    with pytest.raises(KeyError, match="the third call"):
        worker_ways.side_by_side(model, (ONE, TWO))
    assert len(calls) < 2 * protocol.CALLS_A_THREAD


def test_the_rarest_result_is_the_one_that_was_disturbed() -> None:
    wrong = ONE.clone()
    wrong[3, 3] = float("nan")
    assert worker_ways.rarest([ONE, wrong, ONE.clone(), ONE.clone()]) is wrong
    assert worker_ways.rarest([wrong, ONE, ONE.clone()]) is wrong
    assert worker_ways.rarest([wrong, wrong.clone()]) is wrong, "NaN are compared by their bits"
    assert worker_ways.rarest([ONE, ONE.double(), ONE.clone()]).dtype == torch.float64  # type: ignore[attr-defined]
    assert worker_ways.rarest([None, ONE, None]) is ONE


SHARED = """
BUFFER = {}
def mean(x):
    key = (x.shape, x.dtype)
    kept = BUFFER.setdefault(key, x.abs().mean(1, keepdim=True))
    return kept.copy_(x.abs().mean(1, keepdim=True))
"""


def test_a_workspace_that_threads_share_is_told_and_rejects_who_promised(make_subject: MakeSubject) -> None:
    # Beside other jobs a pair of threads may well not meet by chance: here each waits until the other has written, too.
    body = "shared = mean(x)\nif threading.active_count() > 1:\n    met.wait(10)\nreturn x / shared"
    head = f"import threading\nmet = threading.Barrier(2)\n{SHARED}"
    assert examined(concurrency.THREADS, make_subject, body, head).outcome == "reported"
    assert examined(concurrency.THREADS, make_subject, body, head, "threads").outcome == "failed"
    assert examined(concurrency.THREADS, make_subject, RIGHT, "", "threads").outcome == "passed"


def test_who_is_too_slow_to_be_called_so_often_does_not_hang(make_subject: MakeSubject) -> None:
    subject = make_subject(f"import time\ntime.sleep(0.2)\n{RIGHT}", call=1.0)
    assert subject.probe() is None
    seen = engine.replay(subject, concurrency.THREADS, concurrency.THREADS.pinned[0])
    assert (seen.unsupported, seen.findings) == (1, ())
    (note,) = (note for note in seen.notes if note.startswith("not called from two threads: 16 calls of 0.2"))
    assert note.endswith("s are more than the 1 s of one")


def test_one_that_may_be_called_from_one_thread_alone_says_so(make_subject: MakeSubject) -> None:
    head = "import threading\nHOME = threading.get_ident()"
    body = f"if threading.get_ident() != HOME:\n    raise RuntimeError('one thread only')\n{RIGHT}"
    seen = examined(concurrency.THREADS, make_subject, body, head)
    assert (seen.unsupported, seen.findings) == (1, ())
    assert [note for note in seen.notes if note.startswith("cannot be called from two threads at once: RuntimeError")]
    seen = examined(concurrency.THREADS, make_subject, body, head, "threads")
    assert (seen.outcome, seen.findings[0].kind) == ("failed", Kind.UNSUPPORTED)


# ---- Very many calls ----------------------------------------------------------------------------------------------


def counted(answer: Callable[[int], object]) -> worker_ways.Model:
    """A model that answers by the number of the call."""
    calls = itertools.count(1)
    return lambda _: answer(next(calls))


def test_so_many_calls_are_made_and_the_last_result_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_ways, "SECONDS_IN_A_ROW", 600)
    calls: list[torch.Tensor] = []

    def model(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x + 1

    result, made = worker_ways.often(model, ONE)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, ONE + 1)
    assert made == len(calls) == protocol.CALLS_IN_A_ROW > 1 << 16


@pytest.mark.parametrize("place", [2, 3, 1000, 1500], ids=["second", "third", "some", "last"])
@pytest.mark.parametrize(
    "odd",
    [TWO, ONE[0], ONE.double(), ONE.to_mkldnn(), None],
    ids=["values", "shape", "type", "layout", "none"],
)
def test_the_first_result_that_is_unlike_the_first_is_handed_out(
    place: int, odd: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_ways, "CALLS_IN_A_ROW", 1500)
    result, made = worker_ways.often(counted(lambda call: odd if call == place else ONE), ONE)
    assert result is odd
    assert made == 1500


def test_a_nan_in_every_result_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_ways, "SECONDS_IN_A_ROW", 600)
    spoilt = torch.full((2, 3), torch.nan)
    last = torch.full((2, 3), torch.nan)
    result, _ = worker_ways.often(counted(lambda call: last if call == protocol.CALLS_IN_A_ROW else spoilt), ONE)
    assert result is last


def test_a_slow_model_is_not_called_for_much_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_ways, "SECONDS_IN_A_ROW", 0.1)
    spent: list[float] = []
    monkeypatch.setattr(worker_ways, "_now", lambda: sum(spent))

    def slow(x: torch.Tensor) -> torch.Tensor:
        spent.append(0.01)
        return x

    _, made = worker_ways.often(slow, ONE)
    assert made == len(spent) == 16, "1, 1, 2, 4 and 8 calls: after 8 a tenth of a second is not over yet"


@pytest.mark.parametrize(
    "line", ["torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.fp32_precision = 'tf32'"]
)
def test_who_has_set_a_precision_of_its_own_is_left_alone(line: str, make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, line)
    assert subject.probe() is None
    assert not engine.replay(subject, frameworks.SETTING, parse("shape=5x301,seed=29")).findings


@pytest.mark.parametrize("shipped", [False, True])
def test_what_imprecise_products_cost_is_told_and_of_the_shipped_kernel_it_is_a_fault(
    shipped: bool, make_subject: MakeSubject
) -> None:
    narrow = "torch.bfloat16 if torch.get_float32_matmul_precision() == 'medium' else x.dtype"
    subject = make_subject(f"return x / x.abs().to({narrow}).to(x.dtype).mean(1, keepdim=True)")
    subject.shipped = shipped
    assert subject.probe() is None
    seen = engine.replay(subject, frameworks.SETTING, parse("shape=5x301,seed=29"))
    told = [note for note in seen.notes if note.startswith("is less exact where float32 products may be imprecise: ")]
    assert (bool(seen.findings), bool(told)) == (shipped, not shipped)


# ---- Compiled -------------------------------------------------------------------------------------------------------


def test_a_difference_under_compilation_is_found(make_subject: MakeSubject) -> None:
    subject = make_subject(f"x = x + 1 if torch.compiler.is_compiling() else x\n{RIGHT}")
    assert subject.probe() is None
    (found,) = run_case(subject, frameworks.COMPILE, parse("shape=3x33,seed=1")).findings
    assert found.text.startswith("under torch.compile: ")


# ---- Settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("inside torch.no_grad", "not torch.is_grad_enabled()"),
        ("inside torch.inference_mode", "torch.is_inference_mode_enabled()"),
        ("in evaluation (model.eval())", "not self.training"),
        ("in evaluation, inside torch.no_grad", "not (self.training or torch.is_grad_enabled())"),
        ("in evaluation, inside torch.inference_mode", "not self.training and torch.is_inference_mode_enabled()"),
        ("with one thread", "torch.get_num_threads() == 1"),
        ("with 7 threads", "torch.get_num_threads() == 7"),
        ("with 64 threads", "torch.get_num_threads() == 64"),
        ("with many threads", "torch.get_num_threads() > 64"),
        ("with float64 as the default type", "torch.empty(1).dtype is torch.float64"),
        ("with bfloat16 as the default type", "torch.empty(1).dtype is torch.bfloat16"),
        ("where algorithms must be deterministic", "torch.are_deterministic_algorithms_enabled()"),
    ],
)
def test_what_is_right_but_in_one_setting_is_found(setting: str, asked: str, make_subject: MakeSubject) -> None:
    subject = make_subject(f"x = x + 1 if {asked} else x\n{RIGHT}", head="torch.set_num_threads(2)")
    assert subject.probe() is None
    found = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1")).findings
    assert setting in [each.text.partition(": ")[0] for each in found]
    assert not run_case(subject, contract.SHAPES, parse("shape=3x33,seed=1")).findings, "it is over with the call"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("given a view of another tensor", "x._base is not None and not x.requires_grad"),
        ("given a parameter", "isinstance(x, torch.nn.Parameter)"),
        ("given an inference tensor", "x.is_inference() and not torch.is_inference_mode_enabled()"),
        ("given a tensor that asks for a gradient, inside torch.no_grad", "x.grad_fn is not None and x.requires_grad"),
        (
            "given a parameter that asks for a gradient, inside torch.no_grad",
            "isinstance(x, torch.nn.Parameter) and x.requires_grad",
        ),
        ("from another thread", "threading.current_thread() is not threading.main_thread()"),
    ],
)
@pytest.mark.parametrize("case", ["shape=3x33,seed=1", "shape=3x33,layout=offset1+order1.0,seed=1", "shape=0x5"])
def test_what_is_right_but_for_one_guise_is_found(words: str, asked: str, case: str, make_subject: MakeSubject) -> None:
    subject = make_subject(f"x = x[:, :0] if {asked} else x\n{RIGHT}", head="import threading")
    assert subject.probe() is None
    found = run_case(subject, frameworks.SETTING, parse(case)).findings
    assert [each.text.partition(": ")[0] for each in found] == [words]


@pytest.mark.parametrize(
    ("odd", "found", "notes"),
    [
        ("x._base is not None", ["given a view of another tensor"], 0),
        ("isinstance(x, torch.nn.Parameter) or x.is_inference() or x.grad_fn is not None", [], 4),
    ],
)
def test_a_guise_may_be_refused_but_for_a_view(
    odd: str, found: list[str], notes: int, make_subject: MakeSubject
) -> None:
    subject = make_subject(f"if {odd}: raise TypeError('not so')\n{RIGHT}")
    assert subject.probe() is None
    trial = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1"))
    assert [each.text.partition(": ")[0] for each in trial.findings] == found
    assert len([note for note in trial.notes if "TypeError: not so" in note]) == notes


def test_many_threads_are_more_than_a_large_machine_has(make_subject: MakeSubject) -> None:
    body = f"x = x + 1 if torch.get_num_threads() > 70 else x\n{RIGHT}"
    subject = make_subject(body, head="torch.set_num_threads(70)")
    assert subject.probe() is None
    (found,) = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1")).findings
    assert found.text.startswith("with many threads: ")


def test_a_refusal_says_in_which_setting(make_subject: MakeSubject) -> None:
    subject = make_subject(f"if torch.is_inference_mode_enabled(): raise ValueError('no')\n{RIGHT}")
    assert subject.probe() is None
    (found,) = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1")).findings
    assert found.text.startswith("inside torch.inference_mode: refuses an input that it must take (fp32)")


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("torch.empty(1).dtype is torch.float64", True),
        ("torch.empty(1).dtype is torch.bfloat16", True),
        ("torch.are_deterministic_algorithms_enabled()", True),
        ("torch.is_inference_mode_enabled()", False),
    ],
)
def test_some_settings_may_be_refused(asked: str, refused: bool, make_subject: MakeSubject) -> None:
    subject = make_subject(f"if {asked}: raise TypeError('not so')\n{RIGHT}")
    assert subject.probe() is None
    trial = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1"))
    assert bool(trial.findings) is not refused
    assert any("TypeError: not so" in note for note in trial.notes) is refused


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        # The result is made without naming its type, as many wrappers of a float32 kernel make it.
        ("y = torch.empty(x.shape)\ntorch.div(x, x.abs().mean(1, keepdim=True), out=y)\nreturn y", False),
        ("return x / (x.abs().mean(1, keepdim=True) * (1 + (torch.empty(1).dtype is torch.float64)))", True),
        # The means are kept in the default type, if that is narrower: the result's type tells nothing of it.
        (
            "means = x.abs().mean(1, keepdim=True)\n"
            "kept = min(x.dtype, torch.get_default_dtype(), key=lambda each: each.itemsize)\n"
            "return x / means.to(kept).to(x.dtype)",
            True,
        ),
    ],
)
def test_another_default_type_may_show_in_the_result_and_not_in_its_values(
    body: str, wrong: bool, make_subject: MakeSubject
) -> None:
    subject = make_subject(body)
    assert subject.probe() is None
    trial = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1"))
    assert bool(trial.findings) is wrong
    for other in ("float64", "bfloat16"):
        assert any(f"returns {other} for float32" in note for note in trial.notes) is not wrong


# ---- Gradients ------------------------------------------------------------------------------------------------------

BACKWARD = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x.abs().mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, inflow):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(x / x.abs().mean(1, keepdim=True), x, {inflow})
"""


@pytest.mark.parametrize(
    ("inflow", "turn", "found"),
    [
        ("inflow", 0, False),
        ("inflow", 1, False),
        # Read as if it were contiguous: https://github.com/flagos-ai/FlagGems/pull/1082
        ("inflow if inflow.is_contiguous() else torch.zeros_like(inflow)", 0, False),
        ("inflow if inflow.is_contiguous() else torch.zeros_like(inflow)", 1, True),
        ("inflow if inflow.is_contiguous() else torch.zeros_like(inflow)", 2, True),
        ("inflow", 2, False),
        ("inflow", 3, False),
    ],
)
def test_a_gradient_comes_from_a_sum_too(inflow: str, turn: int, found: bool, make_subject: MakeSubject) -> None:
    subject = make_subject("return Own.apply(x)", head=BACKWARD.format(inflow=inflow))
    assert subject.probe() is None
    trial = run_case(subject, frameworks.AUTOGRAD, parse(f"shape=3x33,seed=1,turn={turn}"))
    assert [finding.kind for finding in trial.findings] == ([Kind.WRONG_GRADIENT] if found else [])
    assert not trial.notes


# ---- Stand-ins ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("name", [refusal.stand_in for refusal in REFUSALS if refusal.stand_in])
def test_what_is_handed_over_is_what_it_is_called(name: str) -> None:
    made = worker_ways.STAND_INS[name](torch.eye(2))
    kind = {"list": "list", "None": "NoneType", "number": "float", "ndarray": "ndarray"}.get(name, "Tensor")
    assert type(made).__name__ == kind
    if kind == "Tensor":
        assert isinstance(made, torch.Tensor)
        assert made.layout is {"sparse": torch.sparse_coo, "csr": torch.sparse_csr}[name]


# ---- A busy card ----------------------------------------------------------------------------------------------------


def test_work_that_keeps_a_card_busy_is_queued_on_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class StrawStream:
        def __init__(self, _: torch.device) -> None:
            order.append("made")

        def __enter__(self) -> None:
            order.append("entered")

        def __exit__(self, *_: object) -> None:
            order.append("left")

    monkeypatch.setattr(worker_ways, "_Stream", StrawStream)
    monkeypatch.setattr(worker_ways, "_on_stream", lambda stream: stream)
    monkeypatch.setattr(worker_ways, "_add", lambda *_: order.append("work"))
    monkeypatch.setattr(worker_ways, "_BUSY_ELEMENTS", 4)
    session = worker.Session([])
    session._keep_busy(torch.device("cpu"))
    session._keep_busy(torch.device("cpu"))
    once = ["entered", *["work"] * worker_ways._BUSY_TIMES, "left"]
    assert order == ["made", *once, *once]


def test_who_refuses_three_times_in_a_row_is_not_asked_again(make_subject: MakeSubject) -> None:
    head = "import threading\nHOME = threading.get_ident()"
    body = f"if threading.get_ident() != HOME:\n    raise RuntimeError('one thread only')\n{RIGHT}"
    for required, refusals in (((), 3), (("threads",), 5)):
        subject = make_subject(body, head=head, required=frozenset({"fp32", *required}))
        assert subject.probe() is None
        for _ in range(5):
            run_case(subject, concurrency.THREADS, parse("shape=3x33,seed=1"))
        assert subject.refusals["threads"] == refusals


def test_a_worker_knows_every_setting_by_its_name() -> None:
    assert tuple(worker_ways.SETTINGS) == protocol.SETTINGS


def test_a_part_that_is_in_evaluation_for_good_stays_there() -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.5).eval(), torch.nn.Dropout(0.5))
    with worker_ways.SETTINGS["in evaluation (model.eval())"](model):
        assert not any(each.training for each in model.modules())
    assert [each.training for each in model.modules()] == [True, False, True]


class Whole(torch.nn.Module):
    """One with a part that is in evaluation for good."""

    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Dropout(0.5).eval()


class Unhashable(Whole):
    """As a dataclass is."""

    __hash__ = None  # type: ignore[assignment]


class Final(torch.nn.Module):
    """Its attributes are final once it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["made"] = True

    def __setattr__(self, name: str, value: object) -> None:
        if "made" in self.__dict__:
            raise AttributeError(f"{name} is final")
        super().__setattr__(name, value)  # type: ignore[arg-type]

    def train(self, mode: bool = True) -> Final:
        """Note it beside them."""
        self.__dict__["training"] = mode
        return self


class NeverTrained(Whole):
    """Refuses to be trained."""

    def train(self, mode: bool = True) -> NeverTrained:
        """Not so."""
        if mode:
            raise RuntimeError("inference only")
        return super().train(mode)


class SaysSo(torch.nn.Module):
    """Says by a property that it is never trained."""

    training = property(lambda _: False, lambda *_: None)

    def train(self, mode: bool = True) -> SaysSo:
        """Hears no more than that it is not."""
        assert not mode
        return self


def frozen() -> torch.nn.Module:
    return torch.nn.Sequential(torch.jit.freeze(torch.jit.script(torch.nn.Identity().eval())), torch.nn.Identity())


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("make", [Whole, Unhashable, Final, NeverTrained, SaysSo, frozen])
def test_whoever_can_be_told_so_is_in_evaluation_and_back(make: Callable[[], torch.nn.Module]) -> None:
    model = make()
    before = {part: part.training for part in model.modules()} if make not in (Unhashable, frozen) else {}
    for _ in range(2):
        with worker_ways.SETTINGS["in evaluation (model.eval())"](model):
            assert not model.training
        assert all(part.training == trained for part, trained in before.items())
        assert model.training is (make is not SaysSo)


def test_a_model_hears_that_it_is_evaluated_in_its_own_way() -> None:
    class Merging(torch.nn.Module):
        heard: list[bool] = []  # noqa: RUF012

        def train(self, mode: bool = True) -> Merging:
            self.heard.append(mode)
            return super().train(mode)

    with worker_ways.SETTINGS["in evaluation (model.eval())"](Merging()):
        assert Merging.heard == [False]
    assert Merging.heard == [False, True]


CANNOT = "def no(self): raise ValueError('no')\ntorch.nn.Module.eval = no"


def test_a_model_that_cannot_be_put_into_evaluation_fails_there(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, head=CANNOT)
    assert subject.probe() is None
    (found,) = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1")).findings
    assert found.text.startswith("in evaluation (model.eval()): refuses an input that it must take (fp32)")


EXPORTED = """
from torch.export import Dim, export
class Inner(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(dim=1, keepdim=True)
sizes = {"x": {0: Dim("rows", min=1, max=1 << 30), 1: Dim("columns", min=1, max=1 << 30)}}
inner = export(Inner(), (torch.randn(4, 8),), dynamic_shapes=sizes).module()
"""


@pytest.mark.filterwarnings("ignore")
def test_an_exported_program_need_not_be_put_into_evaluation(make_subject: MakeSubject) -> None:
    subject = make_subject("self.inner = inner\nreturn self.inner(x)", head=EXPORTED)
    assert subject.probe() is None
    told = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1"))
    assert not told.findings
    assert sum("does not work in evaluation" in each for each in told.notes) == 3


def test_who_refuses_to_work_in_evaluation_by_itself_fails_there(make_subject: MakeSubject) -> None:
    subject = make_subject(f"if not self.training: raise NotImplementedError\n{RIGHT}")
    assert subject.probe() is None
    (found,) = run_case(subject, frameworks.SETTING, parse("shape=3x33,seed=1")).findings
    assert found.text.startswith("in evaluation (model.eval()): refuses an input that it must take (fp32)")


@pytest.mark.parametrize("mode", ["default", "warn", "error"])
def test_how_strictly_algorithms_must_be_deterministic_is_as_before(mode: str) -> None:
    before = torch.get_deterministic_debug_mode()
    try:
        torch.set_deterministic_debug_mode(mode)
        set_so = torch.get_deterministic_debug_mode()
        with worker_ways.SETTINGS["where algorithms must be deterministic"](lambda x: x):
            assert torch.get_deterministic_debug_mode() == 2
        assert torch.get_deterministic_debug_mode() == set_so
    finally:
        torch.set_deterministic_debug_mode(before)
