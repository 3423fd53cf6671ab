"""What a call does besides its result: to the caller's tensor, to the process, to memory; each seen, and no more."""

from __future__ import annotations

import os
from types import ModuleType

import pytest
import torch

from .. import inputs, judge, worker_library, worker_output
from ..cases import parse
from ..examination import Property, run_case
from ..findings import Kind
from ..footprint import LEAK, READ_ONLY
from ..frameworks import SETTING
from ..histories import HISTORY, REPEATED
from ..l1_norm import L1_NORM
from ..observation import Outcome
from ..protocol import OVERWRITTEN_BYTE
from .conftest import RIGHT, MakeRunner, MakeSubject

GIVEN = inputs.build(parse("shape=3x5,seed=1"))
#: A worker's standard output, as Python shows it.
PRINTS = "<_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>"


@pytest.mark.parametrize(
    ("forward", "altered"),
    [
        ("x.t_(); x.t_(); return x.clone()", ()),
        ("x.t_(); return x.t().clone()", ("shape [3, 5] -> [5, 3]", "strides [5, 1] -> [1, 5]")),
        ("x.requires_grad_(); return x.detach().clone()", ("requires_grad False -> True",)),
        ("return x.clone()", ()),
        (
            "x.__class__ = torch.nn.Parameter; return x.detach().clone()",
            ("class <class 'torch.Tensor'> -> <class 'torch.nn.parameter.Parameter'>",),
        ),
        ("x.kept = 1; return x.clone()", ("attributes [] -> ['kept']",)),
        ("import torch._dynamo as d; d.mark_dynamic(x, 0); d.maybe_mark_dynamic(x, 1); return x.clone()", ()),
        ("x.grad = x.clone(); return x.clone()", ("whether it has a gradient False -> True",)),
    ],
)
def test_what_becomes_of_the_callers_tensor_is_told(
    forward: str, altered: tuple[str, ...], make_runner: MakeRunner
) -> None:
    meta = make_runner(forward).observe(GIVEN).meta
    assert meta is not None
    assert meta.altered == altered


@pytest.mark.parametrize(
    ("forward", "left"),
    [
        ("return x.clone()", ()),
        ("torch.rand(1); return x.clone()", ("the state of the random numbers",)),
        ("torch.set_num_threads(3); return x.clone()", ("the number of threads: 2 -> 3",)),
        ("torch.set_flush_denormal(True); return x.clone()", ("subnormal numbers: kept -> flushed to zero",)),
        ("torch.equal = lambda *a: True; return x.clone()", ("torch.equal",)),
        ("torch.Tensor.add_ = None; return x.clone()", ("torch.Tensor.add_",)),
        # torch's own wrapping, as its compiler does it when it is first used, is not the candidate's doing.
        ("torch.manual_seed = torch.compiler.disable(torch.manual_seed); return x.clone()", ()),
        ("with torch.no_grad(): return x.clone()", ()),
        ("import random; random.random(); return x.clone()", ("the state of Python's random numbers",)),
        ("import numpy; numpy.random.rand(); return x.clone()", ("the state of numpy's random numbers",)),
        ("import os; os.environ['PATH'] = ''; return x.clone()", ("the environment variable PATH",)),
        ("import os; os.environ['NEW_OF_A_LIBRARY'] = ''; return x.clone()", ()),
        ("import os; os.umask(0); return x.clone()", ("who may read the files that it makes (umask): 0o22 -> 0o0",)),
        (
            "import sys; sys.setrecursionlimit(400); return x.clone()",
            ("how deeply functions may call each other: 1000 -> 400",),
        ),
        ("import sys; sys.setrecursionlimit(2000); return x.clone()", ()),
        ("import sys; sys.setswitchinterval(1); return x.clone()", ("how often threads take turns: 0.005 -> 1.0",)),
        (
            "import decimal; decimal.getcontext().prec = 3; return x.clone()",
            ("the precision of decimal numbers: 28 -> 3",),
        ),
        ("import socket; socket.setdefaulttimeout(1); return x.clone()", ("how long connections wait: None -> 1.0",)),
        ("import logging; logging.disable(50); return x.clone()", ("which messages are logged: 0 -> 50",)),
        ("import gc; gc.disable(); return x.clone()", ("whether garbage is collected: True -> False",)),
        (
            "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); return x.clone()",
            ("what SIGTERM does: SIG_DFL -> SIG_IGN",),
        ),
        ("torch.set_autocast_enabled('cpu', True); return x.clone()", ("autocast on cpu: False -> True",)),
        ("with torch.autocast('cpu'): return x.clone()", ()),
        ("import math; math.prod = sum; return x.clone()", ("math.prod",)),
        ("import sys; sys.stdout = None; return x.clone()", (f"where Python prints: {PRINTS} -> None",)),
        ("import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): return x.clone()", ()),
        ("torch.linalg.norm = sum; return x.clone()", ("torch.linalg.norm",)),
        ("import signal; signal.alarm(3600); return x.clone()", ("a pending alarm: False -> True",)),
        ("import signal; signal.alarm(3600); signal.alarm(0); return x.clone()", ()),
        (
            "import signal; signal.setitimer(signal.ITIMER_PROF, 3600); return x.clone()",
            ("a pending alarm of all its processor time: False -> True",),
        ),
        (
            "import signal; signal.setitimer(signal.ITIMER_VIRTUAL, 3600); return x.clone()",
            ("a pending alarm of its own processor time: False -> True",),
        ),
        (
            "import signal as s; s.pthread_sigmask(s.SIG_BLOCK, [s.SIGINT, s.SIGUSR1, 40]); return x.clone()",
            ("which signals are blocked: none -> SIGINT, SIGUSR1, signal 40",),
        ),
        (
            "import signal as s; s.signal(s.SIGHUP, s.SIG_IGN); s.signal(40, lambda *_: None); return x.clone()",
            (
                "what SIGHUP does: SIG_DFL -> SIG_IGN",
                "what signal 40 does: SIG_DFL -> ModelNew.forward.<locals>.<lambda>",
            ),
        ),
        (
            "import tracemalloc; tracemalloc.start(); return x.clone()",
            ("whether what is allocated is traced: False -> True",),
        ),
        ("import tracemalloc; tracemalloc.start(); tracemalloc.stop(); return x.clone()", ()),
        (
            "import logging; logging.basicConfig(level=10); return x.clone()",
            ("from which level on messages are logged: 30 -> 10",),
        ),
        ("import logging; logging.warning('said'); return x.clone()", ()),
        (
            "import sys; sys.excepthook = print; return x.clone()",
            ("what is done with an exception that nobody catches: the usual -> print",),
        ),
        ("import sys; sys.excepthook = torch.compiler.disable(sys.excepthook); return x.clone()", ()),
        (
            "import threading; threading.excepthook = print; return x.clone()",
            ("what is done with one in a thread: the usual -> print",),
        ),
        ("torch.nn.Linear.forward = None; return x.clone()", ("torch.nn.Linear.forward",)),
        ("torch.nn.Linear = None; return x.clone()", ("torch.nn.Linear",)),
        ("import numpy; numpy.abs = None; return x.clone()", ("numpy.abs",)),
        (
            "torch.cuda.synchronize = torch.testing.assert_close = None; return x.clone()",
            (
                "torch.cuda.synchronize",
                "torch.testing.assert_close",
            ),
        ),
        (
            "torch.use_deterministic_algorithms(False, warn_only=True); return x.clone()",
            ("whether it is enough to warn of those that are not: False -> True",),
        ),
        (
            "torch.backends.cudnn.deterministic = True; return x.clone()",
            ("whether cuDNN must be deterministic: False -> True",),
        ),
        (
            "torch.autograd.set_multithreading_enabled(False); return x.clone()",
            ("whether gradients flow back in several threads: True -> False",),
        ),
    ],
)
def test_what_is_left_in_the_process_is_told_at_every_call(
    forward: str, left: tuple[str, ...], make_runner: MakeRunner
) -> None:
    runner = make_runner(forward, head="import os; os.umask(0o22); torch.set_num_threads(2)")
    for _ in range(2):
        meta = runner.observe(GIVEN).meta
        assert meta is not None
        assert meta.left == left


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        ("import os; os.setpriority(os.PRIO_PROCESS, 0, 19); return x.clone()", "the priority of its process"),
        ("import numpy; numpy.seterr(all='ignore'); return x.clone()", "numpy's treatment of errors"),
        ("import gc; gc.set_threshold(7, 8, 9); return x.clone()", "how often garbage is collected"),
        ("import locale; locale.setlocale(locale.LC_ALL, 'C'); return x.clone()", "the locale"),
        ("torch.set_printoptions(precision=2); return x.clone()", "how torch prints numbers"),
        ("import numpy; numpy.set_printoptions(precision=2); return x.clone()", "how numpy prints numbers"),
        ("import os; os.close(0); return x.clone()", "where its standard input comes from"),
        ("import os; os.dup2(0, 1); return x.clone()", "where its standard output goes"),
        ("import os; os.dup2(0, 2); return x.clone()", "where its standard error goes"),
        ("import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, 99)); return x.clone()", "its limit RLIMIT_NOFILE"),
        ("import gc; gc.set_debug(gc.DEBUG_SAVEALL); return x.clone()", "what is told, and kept, of garbage"),
        (
            "import logging; logging.root.addFilter(lambda _: False); return x.clone()",
            "which of the messages that are logged are kept back",
        ),
        ("import logging; logging.lastResort = None; return x.clone()", "what shows messages where nothing was set up"),
        ("import sys; sys.tracebacklimit = 0; return x.clone()", "how much of a traceback is shown"),
        ("import threading; threading.setprofile(print); return x.clone()", "a function that profiles threads"),
        (
            "import warnings; warnings.filterwarnings('ignore', message='.*'); return x.clone()",
            "warnings that are treated alike, whoever warns of what",
        ),
        ("torch.compiler.set_stance('force_eager'); return x.clone()", "whether torch.compile compiles"),
        (
            "torch.optim.lr_scheduler.StepLR.get_lr = lambda self: [0.0]; return x.clone()",
            "torch.optim.lr_scheduler.StepLR.get_lr",
        ),
        (
            "torch.distributions.Normal.log_prob = lambda self, value: value * 0; return x.clone()",
            "torch.distributions.Normal.log_prob",
        ),
        ("import shutil; shutil.rmtree = shutil.copytree; return x.clone()", "shutil.rmtree"),
    ],
)
def test_what_is_left_is_told_whatever_it_was_before(forward: str, name: str, make_runner: MakeRunner) -> None:
    meta = make_runner(forward).observe(GIVEN).meta
    assert meta is not None
    assert [each.partition(":")[0] for each in meta.left] == [name]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], []),
        ([("last", sum)], ["last"]),
        ([("first", sum)], ["first"]),
        ([("new", sum)], []),
        ([("value", 4)], ["value"]),
        ([("_kept", 4)], []),
        ([("last", None)], ["last"]),
        ([("last", None), ("new", sum)], ["last"]),
        ([("first", None), ("first", len)], []),
        ([("first", None), ("first", len), ("last", sum)], ["last"]),
        ([("first", torch.compiler.disable(lambda: 1))], []),
    ],
)
def test_a_function_of_a_library_is_missed_wherever_it_stood(steps: list[tuple[str, object]], found: list[str]) -> None:
    space = ModuleType("library")
    vars(space).update(first=len, value=3, _kept=3, last=max)
    functions = worker_library.Functions(space)
    for name, value in steps:
        if value is None:
            delattr(space, name)
        else:
            setattr(space, name, value)
    assert functions.changes() == found


INSIDE = "def other(*given, **named): return given[0]\nimport torch.nn.functional as F"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("F.dropout.__code__ = other.__code__", "torch.nn.functional.dropout"),
        ("F.dropout.__defaults__ = (0.0, True, False)", "torch.nn.functional.dropout"),
        ("torch.optim.Adam.__init__.__kwdefaults__['maximize'] = True", "torch.optim.Adam.__init__"),
    ],
)
def test_what_is_exchanged_inside_a_function_is_found(change: str, name: str, make_subject: MakeSubject) -> None:
    subject = make_subject(f"{change}\n{RIGHT}", head=INSIDE)
    assert subject.probe() is None
    found = run_case(subject, SETTING, parse("shape=3x33,seed=1")).findings
    assert found[0].kind is Kind.STATE_LEAK
    assert name in found[0].text


def test_an_import_that_exchanges_what_is_inside_a_comparison_is_found(make_subject: MakeSubject) -> None:
    head = f"{INSIDE}\ntorch.testing.assert_close.__code__ = other.__code__"
    found = make_subject(RIGHT, head=head).probe()
    assert found is not None
    assert found.text.startswith("to import it replaces torch.testing.assert_close, by which programs tell right")


def test_what_a_refused_call_leaves_is_not_the_next_calls_doing(make_runner: MakeRunner) -> None:
    refuses = "if not CALLS:\n    CALLS.append(x.t_())\n    torch.rand(1)\n    raise ValueError('no')"
    runner = make_runner(f"{refuses}\nreturn x.clone()", head="CALLS = []")
    refused = runner.observe(GIVEN)
    assert refused.outcome is Outcome.RAISED
    assert refused.error is not None
    assert refused.error.left == ("the state of the random numbers",)
    meta = runner.observe(GIVEN).meta
    assert meta is not None
    assert (meta.shape, meta.left, meta.altered) == ((3, 5), (), ())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind a process to processors")
def test_a_caller_that_is_bound_to_a_processor_is_told(make_runner: MakeRunner) -> None:
    there = sorted(os.sched_getaffinity(0))
    meta = make_runner(f"import os; os.sched_setaffinity(0, {{{there[0]}}}); return x.clone()").observe(GIVEN).meta
    assert meta is not None
    assert bool(meta.left) == (len(there) > 1)
    assert all("processors" in each for each in meta.left)


def test_what_is_changed_at_import_is_part_of_the_candidate(make_runner: MakeRunner) -> None:
    meta = (
        make_runner("return x.clone()", head="torch.manual_seed(7)\ntorch.set_default_dtype(torch.float64)")
        .observe(GIVEN)
        .meta
    )
    assert meta is not None
    assert meta.left == ()


@pytest.mark.skipif(not hasattr(torch._C, "_get_fp32_precision_getter"), reason="this torch has no such settings")
@pytest.mark.parametrize(("setting", "name"), [("cuda", "cuBLAS"), ("mkldnn", "oneDNN")])
def test_the_newer_settings_of_products_are_told_and_do_no_harm(
    setting: str, name: str, make_runner: MakeRunner
) -> None:
    """Once one of them is used, torch refuses to answer in the words of the older setting."""
    change = f"torch.backends.{setting}.matmul.fp32_precision = 'tf32'"
    early = make_runner("return x.clone()", head=change).observe(GIVEN)
    assert early.meta is not None, early.death
    assert early.meta.left == ()
    late = make_runner(f"{change}; return x.clone()").observe(GIVEN)
    assert late.meta is not None, late.error
    assert any(each.startswith(f"the precision of {name}'s float32 products: ") for each in late.meta.left)


def test_a_setting_of_products_that_is_put_back_in_the_older_words_is_no_leak(make_runner: MakeRunner) -> None:
    """Torch has none for "not set": what was, comes back as IEEE's, which is the same."""
    put_back = """
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("medium")
        y = x.clone()
        torch.set_float32_matmul_precision(before)
        return y
    """
    meta = make_runner(put_back).observe(GIVEN).meta
    assert meta is not None
    assert meta.left == ()
    meta = make_runner("torch.set_float32_matmul_precision('medium'); return x.clone()").observe(GIVEN).meta
    assert meta is not None
    assert "the precision of float32 products: highest -> medium" in meta.left


def test_an_input_that_tells_nothing_any_more_is_a_changed_one(make_runner: MakeRunner) -> None:
    head = "HOOK = {'__torch_function__': classmethod(lambda *_: 1 / 0)}"
    forward = "y = x.clone(); x.__class__ = type('Silent', (torch.Tensor,), HOOK); return y"
    seen = make_runner(forward, head=head).observe(GIVEN)
    assert seen.meta is not None, seen.error
    assert "shape [3, 5] -> cannot be told (ZeroDivisionError)" in seen.meta.altered


def test_the_tensor_of_the_same_view_is_the_same_object_with_new_data(make_runner: MakeRunner) -> None:
    runner = make_runner("known = self.__dict__.setdefault('known', x); assert known is x; return x.clone()")
    for seed in (1, 2):
        given = inputs.build(parse(f"shape=3x5,seed={seed}"))
        seen = runner.observe(given)
        assert seen.outcome is Outcome.RETURNED, seen.error
        assert seen.output is not None
        assert seen.output.equal(given.logical)
    assert runner.observe(inputs.build(parse("shape=5x3,seed=1"))).outcome is Outcome.RAISED


PUTS_BACK = """
import ctypes
byte = ctypes.c_uint8.from_address(x.data_ptr())
held, byte.value = byte.value, 3
byte.value = held
"""


@pytest.mark.parametrize(
    ("prop", "line", "forward", "kind"),
    [
        (READ_ONLY, "shape=3x5,seed=1", PUTS_BACK, Kind.INPUT_MODIFIED),
        (READ_ONLY, "shape=3x5,layout=offset3,seed=1", "", None),
        (LEAK, "shape=128x1024,seed=1", "self.__dict__.setdefault('kept', []).append(x.clone())", Kind.STATE_LEAK),
        (LEAK, "shape=128x1024,seed=1", "self.kept = x.clone()", None),
        (LEAK, "shape=3x5,seed=1", "self.__dict__.setdefault('kept', []).append(x.sum().detach())", Kind.STATE_LEAK),
        (
            LEAK,
            "shape=3x5,seed=1",
            "import collections as c\nself.__dict__.setdefault('kept', c.deque(maxlen=100)).append(x.sum())",
            None,
        ),
        (LEAK, "shape=3x5,seed=1", "self.__dict__.setdefault('kept', []).append(float(x.sum()))", None),
        (
            LEAK,
            "shape=128x1024,seed=1",
            "self.__dict__.setdefault('kept', __import__('collections').deque(maxlen=50)).append(x.clone())",
            None,
        ),
        (
            HISTORY,
            "shape=3x5,seed=1",
            "if self.__dict__.get('known', (None,))[0] is x: return self.known[1].clone()\n"
            "self.__dict__['known'] = (x, x / x.abs().mean(1, keepdim=True))",
            Kind.STALE_RESULT,
        ),
    ],
)
def test_a_property_fails_for_its_reason_and_no_other(
    prop: Property, line: str, forward: str, kind: Kind | None, make_subject: MakeSubject
) -> None:
    subject = make_subject(f"{forward}\n{RIGHT}")
    assert subject.probe() is None
    found = [finding.kind for finding in run_case(subject, prop, parse(line)).findings]
    assert found == ([] if kind is None else [kind])


@pytest.mark.parametrize(("kept", "found"), [("[]", []), ("KEPT", ["the process has 256 more tensors"])])
def test_what_is_left_to_pythons_collector_is_not_kept(kept: str, found: list[str], make_subject: MakeSubject) -> None:
    head = "import gc\ngc.set_threshold(100_000)\nKEPT = []"
    subject = make_subject(f"cycle = [x.sum()]\ncycle.append(cycle)\n{kept}.append(cycle)\n{RIGHT}", head=head)
    assert subject.probe() is None
    findings = run_case(subject, LEAK, parse("shape=3x5,seed=1")).findings
    assert [each.text.partition(" after")[0] for each in findings] == found


def test_a_result_may_be_written_to_by_its_caller(make_runner: MakeRunner) -> None:
    head = "LAST = []"
    again = "LAST.append(x.clone()); return LAST[0]"
    runner = make_runner(again, head=head)
    first, second = runner.observe(GIVEN).output, runner.observe(GIVEN).output
    assert first is not None
    assert second is not None
    assert torch.equal(first, GIVEN.logical)
    assert set(second.view(torch.uint8).unique().tolist()) == {OVERWRITTEN_BYTE}


@pytest.mark.parametrize("forward", ["return x", "return x[:1].clone().expand(3, 5)"])
def test_what_is_rejected_by_itself_is_not_written_to(forward: str, make_runner: MakeRunner) -> None:
    seen = make_runner(forward).observe(GIVEN)
    assert (seen.outcome, seen.damage) == (Outcome.RETURNED, None)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("torch._neg_view(-x)", Kind.WRONG_TYPE, "a lazily negated view"),
        ("x.to('meta')", Kind.WRONG_DEVICE, "a tensor on meta"),
        ("x.to_sparse()", Kind.WRONG_TYPE, "layout torch.sparse_coo"),
        ("torch.nested.nested_tensor(list(x))", Kind.WRONG_TYPE, "returns a nested torch.Tensor"),
        ("torch.Tensor._make_wrapper_subclass(Empty, x.shape)", Kind.WRONG_TYPE, "Empty, expected exactly"),
    ],
)
def test_a_result_that_nobody_can_read_or_write_to_is_no_refusal(
    body: str, kind: Kind, words: str, make_runner: MakeRunner
) -> None:
    head = "class Empty(torch.Tensor):\n    def __torch_dispatch__(self, *_): raise TypeError"
    seen = make_runner(f"return {body}", head=head).observe(GIVEN)
    assert seen.outcome is Outcome.RETURNED, seen.error
    found = judge.judge(GIVEN, seen, L1_NORM).findings[0]
    assert found.kind is kind
    assert words in found.text


def test_a_negated_input_without_elements_may_be_handed_back(make_runner: MakeRunner) -> None:
    given = inputs.build(parse("shape=0x8,layout=negated"))
    seen = make_runner("return x").observe(given)
    assert seen.outcome is Outcome.RETURNED, seen.error
    assert not judge.judge(given, seen, L1_NORM).findings


def test_where_writing_over_a_result_fails_nobody_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("not supported")

    result = torch.ones(3)
    meta = worker_output.describe_output(result, (0, 0))
    monkeypatch.setattr(worker_output, "_fill", fails)
    worker_output.write_over(result, meta)
    assert torch.equal(result, torch.ones(3))


def test_what_is_given_out_twice_is_called_that(make_subject: MakeSubject) -> None:
    body = f"if not LAST:\n    LAST.append((lambda x: x / x.abs().mean(1, keepdim=True))(x))\nreturn LAST[0]\n{RIGHT}"
    subject = make_subject(body, head="LAST = []")
    assert subject.probe() is None
    (found,) = run_case(subject, REPEATED, parse("shape=2x33,seed=3")).findings
    assert found.kind is Kind.ALIASED_OUTPUT
    assert found.text.startswith("gives out again")


@pytest.mark.parametrize(("decorator", "noted"), [("@torch.inference_mode()", True), ("@torch.no_grad()", False)])
def test_a_result_of_inference_mode_is_told(decorator: str, noted: bool, make_subject: MakeSubject) -> None:
    head = f"{decorator}\ndef work(x): return x / x.abs().mean(1, keepdim=True)"
    subject = make_subject("return work(x)", head=head)
    assert subject.probe() is None
    for prop in (HISTORY, SETTING):
        trial = run_case(subject, prop, parse("shape=4x33,seed=3"))
        assert not trial.findings
        assert any("inference tensor" in note for note in trial.notes) is noted


def test_operators_that_torch_replaces_when_first_used_are_its_own_and_others_are_not() -> None:
    torch.func.grad(lambda x: torch.vmap(torch.abs)(x).sum())(torch.ones(3, 2))
    assert any(name.startswith("aten/") and not name.endswith("/Meta") for name in torch.library._impls)
    assert not any(map(worker_library._computes, torch.library._impls))
    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl("abs", torch.neg, "PrivateUse1")
        library.impl("abs.out", torch.neg, "PrivateUse1")
        names = ["aten/abs.out/PrivateUse1", "aten/abs/PrivateUse1"]
        assert sorted(filter(worker_library._computes, torch.library._impls)) == names
    finally:
        library._destroy()
