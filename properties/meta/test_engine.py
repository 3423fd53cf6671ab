"""The engine: a property that can fail fails, with a small case, within its budget, whatever the operator."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from .. import catalogue, concurrency, contract, engine, frameworks, inputs, interface, invariances, judge
from ..cases import Case, parse
from ..examination import Examination, Property
from ..findings import Finding, Kind
from ..operators import Assessment, Fault, Metric, Operator, as_rows
from ..profiles import Profile
from ..protocol import OVERWRITTEN_BYTE
from ..search import telling
from ..trial import Trial, UnsupportedError
from .conftest import RIGHT, MakeSubject

QUICK = Profile("test", examples=30, long_examples=3, longest=1 << 17, shrink_seconds=8, deaths=12)


def negated(x: torch.Tensor, y: torch.Tensor) -> Assessment:
    """The oracle of y = -x: every bit."""
    bad = as_rows(y) != -as_rows(x)
    if not bad.any():
        return Assessment(None, {"wrong elements": Metric(0.0, 0.0)})
    rows = np.flatnonzero(bad.any(1))
    expected = -as_rows(x)[rows]
    fault = Fault(
        Kind.WRONG_VALUE, "", bad.any(1), rows, bad[rows], as_rows(y)[rows], expected, np.zeros_like(expected)
    )
    return Assessment(fault, {"wrong elements": Metric(float(bad.sum()), 0.0)})


#: A second operator: the steps know of a function only what such a record says.
NEGATION = Operator("negation", Path(), Path(), (), negated, scale_invariant=False, odd=True, spread=lambda *_: 0.0)


def examined(prop: Property, make: MakeSubject, body: str, **kind: object) -> Examination:
    subject = make(body, **kind)
    assert subject.probe() is None, subject.broken
    return engine.examine(subject, prop, QUICK, seed=1)


def test_a_property_that_holds_passes_and_counts(make_subject: MakeSubject) -> None:
    seen = examined(contract.SHAPES, make_subject, RIGHT)
    assert (seen.outcome, seen.findings, seen.case) == ("passed", (), None)
    assert seen.examples >= QUICK.examples
    assert {name.partition(",")[0] for name in seen.worst} >= {"scaling error / u", "mean error / limit"}


def test_a_property_that_fails_is_reduced_to_the_edge(make_subject: MakeSubject) -> None:
    seen = examined(contract.SHAPES, make_subject, f"if x.shape[1] > 48: x = x * 2 - x.abs()\n{RIGHT}")
    assert seen.outcome == "failed"
    assert seen.case is not None
    assert (seen.case.shape, str(seen.case.layout), seen.case.dtype) == ((1, 49), "contiguous", "float32")


def test_a_crash_is_reduced_across_deaths(make_subject: MakeSubject) -> None:
    seen = examined(
        contract.SHAPES, make_subject, f"import os\nif x.shape[0] and x.shape[1] >= 70: os.abort()\n{RIGHT}"
    )
    assert seen.case is not None
    assert (seen.findings[0].kind, seen.case.shape) == (Kind.CRASH, (1, 70))


def test_a_hang_costs_no_more_than_the_budget(make_subject: MakeSubject) -> None:
    subject = make_subject(f"while x.shape[1] >= 300: pass\n{RIGHT}", call=0.5)
    subject.probe()
    began = time.monotonic()
    seen = engine.examine(subject, contract.SHAPES, replace(QUICK, shrink_seconds=2), seed=1)
    assert seen.findings[0].kind is Kind.TIMEOUT
    assert time.monotonic() - began < 12, "2 s of search, a few calls of 0.5 s, and new workers"


def test_a_slow_candidate_is_shown_fewer_cases_and_that_is_told(make_subject: MakeSubject) -> None:
    subject = make_subject(f"import time\ntime.sleep(0.1)\n{RIGHT}")
    subject.probe()
    seen = engine.examine(subject, contract.SHAPES, replace(QUICK, call_seconds=1), seed=1)
    assert seen.outcome == "passed"
    assert 1 < seen.examples <= 10
    left_out = seen.notes["left out, as its calls under a property had taken 1 s"]
    assert left_out >= len(contract.SHAPES.pinned) - seen.examples
    wrong = make_subject("import time\ntime.sleep(0.1)\nreturn x / x.abs().sum(1, keepdim=True)")
    wrong.probe()
    assert engine.examine(wrong, contract.SHAPES, replace(QUICK, call_seconds=1), seed=1).outcome == "failed"


def test_after_two_hung_properties_the_rest_run_one_small_case(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT)
    subject.probe()
    subject.hung += ["shapes", "values"]
    seen = engine.examine(subject, contract.LAYOUTS, QUICK, seed=1)
    assert (seen.outcome, seen.examples) == ("not-examined", 1)
    assert seen.reason == "the candidate hung under shapes and values; one small case was run"


def test_what_fails_only_after_other_calls_is_called_so(make_subject: MakeSubject) -> None:
    body = "self.n = getattr(self, 'n', 0) + 1\nreturn x / x.abs().mean(1, keepdim=True) * (1 + (self.n > 40))"
    finding = examined(contract.SHAPES, make_subject, body).findings[0]
    assert finding.kind is Kind.STATE_LEAK
    assert finding.text.startswith("fails only after other calls, and then: ")


def test_who_takes_so_many_calls_and_no_more_refuses_and_leaves_nothing_behind(make_subject: MakeSubject) -> None:
    body = f"self.n = getattr(self, 'n', 0) + 1\nif self.n > 40: raise RuntimeError('RuntimeError: too many')\n{RIGHT}"
    finding = examined(contract.SHAPES, make_subject, body).findings[0]
    assert finding.kind is Kind.UNSUPPORTED
    assert finding.text.startswith("fails only after other calls, and then: refuses an input that it must take")
    assert "RuntimeError: too many" in finding.text
    assert "RuntimeError: RuntimeError" not in finding.text


def test_what_comes_and_goes_while_it_is_searched_is_a_finding_and_no_error_of_the_search(
    make_subject: MakeSubject,
) -> None:
    """Hypothesis finds that a case fails which has passed before, and raises an error of its own."""
    body = f"self.n = getattr(self, 'n', 0) + 1\n{RIGHT.replace('return', 'y =')}\nreturn y if self.n % 11 else y * 2"
    subject = make_subject(body)
    assert subject.probe() is None, subject.broken
    for seed in range(1, 5):
        seen = engine.examine(subject, contract.LAYOUTS, QUICK, seed)
        assert seen.outcome == "failed"
        assert seen.findings[0].kind in (Kind.NONDETERMINISTIC, Kind.STATE_LEAK, Kind.WRONG_VALUE)


def test_a_case_that_passes_when_it_is_repeated_is_not_repeated_behind_another(make_subject: MakeSubject) -> None:
    """Wrong for any other width than its first: behind the case that failed first, all of one width would fail."""
    body = "self.n = getattr(self, 'n', x.shape[1])\nreturn x / x.abs().sum(1, keepdim=True) * self.n"
    finding = examined(contract.SHAPES, make_subject, body).findings[0]
    assert finding.kind is Kind.STATE_LEAK
    assert finding.text.startswith("fails only after other calls, and then: ")


def test_what_fails_at_times_is_called_so(make_subject: MakeSubject) -> None:
    body = "import os\nreturn x / x.abs().mean(1, keepdim=True) * (1 + (os.urandom(1)[0] < 77))"
    finding = examined(contract.SHAPES, make_subject, body).findings[0]
    assert finding.kind in (Kind.NONDETERMINISTIC, Kind.WRONG_VALUE)


def test_a_read_past_the_end_is_told_from_a_crash(make_subject: MakeSubject) -> None:
    body = f"import ctypes\nctypes.string_at(x.data_ptr() + 4 * x.numel(), 64)\n{RIGHT}"
    prop = replace(contract.SHAPES, pinned=(parse("shape=1x16"),))
    subject = make_subject(body)
    subject.probe()
    seen = engine.examine(subject, prop, QUICK, seed=1)
    assert seen.findings[0].kind is Kind.OUT_OF_BOUNDS


def test_what_is_only_promised_is_reported_unless_required(make_subject: MakeSubject) -> None:
    body = "return (x if not x.is_neg() else -x) / x.abs().mean(1, keepdim=True)"
    assert examined(contract.NEGATED, make_subject, body).outcome == "reported"
    required = frozenset({"fp32", "negated"})
    assert examined(contract.NEGATED, make_subject, body, required=required).outcome == "failed"


def test_what_is_wrong_without_the_promise_is_not_only_told(make_subject: MakeSubject) -> None:
    body = "y = x / x.abs().mean(1, keepdim=True)\nreturn y * 1.01 if 1000 < x.shape[1] < 1100 else y"
    for prop in (concurrency.THREADS, frameworks.AUTOCAST):
        prop = replace(prop, pinned=(parse("shape=9x1024,values=signed,seed=1"),))
        seen = examined(prop, make_subject, body)
        assert (seen.outcome, seen.findings[0].kind) == ("failed", Kind.WRONG_VALUE), seen.findings
    fixed = replace(contract.NEGATED, pinned=(parse("shape=9x1024,layout=negated,seed=8"),))
    assert examined(fixed, make_subject, body).outcome == "failed"


def test_what_is_only_promised_is_reported_even_where_it_comes_and_goes(make_subject: MakeSubject) -> None:
    body = f"""
        self.calls = getattr(self, "calls", 0) + 1
        if x.dtype not in (torch.float32, torch.float64) or x.layout != torch.strided: raise TypeError("no floats")
        if x.dim() != 2 and self.calls > 30: raise ValueError("not a matrix")
        {RIGHT}
    """
    seen = examined(interface.ERRORS, make_subject, body)
    assert (seen.outcome, seen.findings[0].kind) == ("reported", Kind.NONDETERMINISTIC)
    required = frozenset({"fp32", "errors"})
    assert examined(interface.ERRORS, make_subject, body, required=required).outcome == "failed"


def test_a_refusal_counts_as_unsupported_unless_it_is_compulsory(make_subject: MakeSubject) -> None:
    body = f"if x.shape[1] > 99: raise ValueError('too long')\n{RIGHT}"
    seen = examined(contract.SHAPES, make_subject, body)
    assert seen.findings[0].text.startswith("refuses an input that it must take (fp32): ValueError: too long")
    assert seen.outcome == "failed", "contiguous float32 matrices are compulsory"
    assert seen.findings[0].kind is Kind.UNSUPPORTED
    half = f"if x.dtype != torch.float32 and x.shape[1] > 40: raise ValueError('too long')\n{RIGHT}"
    seen = examined(contract.SHAPES, make_subject, half)
    assert (seen.outcome, seen.unsupported > 0) == ("passed", True)


def test_where_every_case_was_refused_nothing_was_examined(make_subject: MakeSubject) -> None:
    half = f"if x.dtype != torch.float32 and x.shape[1] > 40: raise ValueError('too long')\n{RIGHT}"
    long = replace(contract.SHAPES, pinned=(Case((3, 99), "float16"), Case((3, 99), "float64")), cases=None)
    seen = examined(long, make_subject, half)
    assert (seen.outcome, seen.examples, seen.unsupported > 0) == ("not-examined", 0, True)
    assert seen.reason == "the candidate refused every case of it, as it may"


def test_a_replay_runs_one_case_in_a_fresh_worker(make_subject: MakeSubject) -> None:
    subject = make_subject("self.n = getattr(self, 'n', 0) + 1\nreturn x / x.abs().mean(1, keepdim=True) * self.n")
    subject.probe()
    case = parse("shape=2x5,seed=1")
    assert engine.replay(subject, contract.SHAPES, case).outcome == "passed"
    wrong = make_subject("return x")
    wrong.probe()
    seen = engine.replay(wrong, contract.SHAPES, case)
    assert seen.case == case
    assert "5x301" not in f"{seen.findings}", "no other case is run for its words"


def test_the_domain_is_found_by_asking(make_subject: MakeSubject) -> None:
    body = f"if x.dtype == torch.float16 or x.dim() != 2: raise TypeError('no')\n{RIGHT}"
    subject = make_subject(body)
    assert subject.probe() is None
    assert set(subject.unsupported) == {"fp16", "nd"}
    assert subject.supported >= {"fp32", "bf16", "fp64", "strided", "offset", "expanded", "empty"}
    assert "TypeError: no" in subject.unsupported["fp16"]


def test_probing_one_that_hangs_everywhere_but_in_plain_float32_ends_soon(make_subject: MakeSubject) -> None:
    subject = make_subject(f"while x.dtype != torch.float32 or not x.is_contiguous(): pass\n{RIGHT}", call=0.5)
    began = time.monotonic()
    assert subject.probe() is None
    assert time.monotonic() - began < 20, "1.5 s for the first, 2 s for each of three others, and their new workers"
    assert subject.supported >= {"fp16", "strided"}, "what hangs is judged, and so found"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("raise ValueError('no')", Kind.UNSUPPORTED),
        ("import os\nos.abort()", Kind.CRASH),
    ],
)
def test_who_does_not_answer_the_first_call_is_not_judged_further(
    make_subject: MakeSubject, body: str, kind: Kind
) -> None:
    broken = make_subject(body).probe()
    assert broken is not None
    assert broken.kind is kind


@pytest.mark.parametrize("line", ["shape=1x1,values=ones", "shape=2x3x4,dtype=float16,layout=order0.2.1"])
def test_a_telling_case_is_larger_and_otherwise_alike(line: str) -> None:
    case = parse(line)
    for larger in telling(case):
        assert larger.columns >= 301
        assert (larger.dtype, larger.layout, len(larger.shape)) == (case.dtype, case.layout, len(case.shape))
        inputs.build(larger)
    assert telling(parse("shape=0x4")) == []
    assert telling(parse("shape=6x400")) == []


def test_findings_are_told_in_the_words_of_a_larger_case(make_subject: MakeSubject) -> None:
    seen = examined(contract.SHAPES, make_subject, "return x / x.abs().sum(1, keepdim=True)")
    assert seen.case is not None
    assert seen.case.numel <= 4
    assert "factor 301 = columns: the sum was used where the mean belongs" in seen.findings[0].text


@pytest.mark.parametrize(("wait", "words"), [(0.1, "written later than the call returns"), (60, "ever written")])
def test_only_what_is_seen_to_be_written_behind_the_call_is_called_late(
    make_subject: MakeSubject, wait: float, words: str
) -> None:
    body = f"""
        y = torch.empty_like(x)
        def work():
            time.sleep({wait})
            y.copy_(x / x.abs().mean(1, keepdim=True))
        threading.Thread(target=work, daemon=True).start()
        return y
    """
    subject = make_subject(body, head="import threading, time")
    found = engine.replay(subject, contract.SHAPES, parse("shape=5x301"))
    assert [finding.kind for finding in found.findings] == [Kind.NOT_WRITTEN]
    assert words in found.findings[0].text
    assert ("never" in found.findings[0].text or "no element" in found.findings[0].text) == (wait == 60), "not both"


def test_memory_that_an_earlier_caller_wrote_to_may_be_written_late_on_a_gpu(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"""
        y = torch.empty_like(x)
        y.view(torch.uint8).fill_({OVERWRITTEN_BYTE})
        def work():
            time.sleep(0.1)
            y.copy_(x / x.abs().mean(1, keepdim=True))
        threading.Thread(target=work, daemon=True).start()
        return y
    """
    monkeypatch.setattr(judge, "_recycles", lambda _: True)  # as on a GPU
    subject = make_subject(body, head="import threading, time")
    (found,) = engine.replay(subject, contract.SHAPES, parse("shape=5x301")).findings
    assert found.kind is Kind.NOT_WRITTEN
    assert found.text.startswith("written later than the call returns")


def test_another_operator_goes_the_same_way(make_subject: MakeSubject) -> None:
    right = examined(contract.SHAPES, make_subject, "return -x", operator=NEGATION)
    assert (right.outcome, right.worst["wrong elements, fp32"].metric.value) == ("passed", 0.0)
    assert examined(invariances.ODD, make_subject, "return -x", operator=NEGATION).outcome == "passed"
    wrong = examined(contract.LAYOUTS, make_subject, "return -x.abs()", operator=NEGATION)
    assert (wrong.outcome, wrong.findings[0].kind) == ("failed", Kind.WRONG_VALUE)
    tail = "y = -x\nif x.dim() == 2 and x.shape[1] > 4: y[:, -1] = 0\nreturn y"
    seen = examined(contract.SHAPES, make_subject, tail, operator=NEGATION)
    assert "only the last column is wrong; zeros stand there" in seen.findings[0].text
    assert seen.case is not None
    assert seen.case.columns == 5
    norm = examined(contract.SHAPES, make_subject, RIGHT, operator=NEGATION)
    assert norm.outcome == "failed"


@pytest.mark.parametrize("name", [name for name, prop in catalogue.CATALOGUE.items() if "cpu" in prop.targets])
def test_every_property_can_fail_and_can_pass(name: str, make_subject: MakeSubject) -> None:
    """What each one is there for, broken: the property says so."""
    broken = {
        "negated": "return (x if not x.is_neg() else -x) / x.abs().mean(1, keepdim=True)",
        "history": "self.y = self.__dict__.get('y', {})\nk = (tuple(x.shape), x.dtype, x.stride())\n"
        "y = self.y.setdefault(k, torch.empty_like(x))\nreturn torch.div(x, x.abs().mean(1, keepdim=True), out=y)",
        "determinism": "import random\nreturn x / x.abs().mean(1, keepdim=True) * (1 + random.randrange(3) * 1e-7)",
        "errors": "return x / x.abs().double().mean(-1, keepdim=True)",
    }.get(name, "return x / x.abs().mean(1, keepdim=True) * 1.001")
    prop = replace(catalogue.CATALOGUE[name], promised="")
    quick = replace(QUICK, examples=8, long_examples=1)
    subject = make_subject(broken)
    subject.probe()
    assert engine.examine(subject, prop, quick, seed=1).outcome == "failed"


def test_a_finding_ends_a_case_and_a_refusal_says_nothing(make_subject: MakeSubject) -> None:
    subject = make_subject("raise ValueError('no')")
    trial = Trial(subject, Case((2, 3), "float16"))
    with pytest.raises(UnsupportedError, match="no"):
        trial.check(inputs.build(trial.case))
    assert trial.findings == []
    assert str(Finding(Kind.CRASH, "ended")) == "crash: ended"
