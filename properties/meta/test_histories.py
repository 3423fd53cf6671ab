"""Sequences of calls: what a turn spells, and that what only an order of calls shows is found and named."""

from __future__ import annotations

import pytest

from .. import engine, histories, worker_ways
from ..cases import parse
from ..examination import Examination, run_case
from ..findings import Kind
from ..histories import Step, steps
from ..profiles import Profile
from ..subject import Subject
from .conftest import RIGHT, MakeSubject

QUICK = Profile("test", examples=10, long_examples=3, longest=1 << 17, shrink_seconds=4, deaths=12)


def examined(make: MakeSubject, body: str, head: str = "") -> Examination:
    subject = make(body, head=head)
    assert subject.probe() is None
    return engine.examine(subject, histories.SEQUENCE, QUICK, seed=1)


def spelled(*found: Step) -> str:
    return f"shape=3x33,turn={sum(step.value * len(Step) ** place for place, step in enumerate(found))}"


def test_a_turn_spells_steps_the_lowest_digit_first() -> None:
    assert steps(0) == []
    assert steps(3214) == [Step.WIDER, Step.NEW_VALUES, Step.KEEP, Step.LOOK]


def test_of_a_call_with_another_type_than_the_cases_the_type_is_told(make_subject: MakeSubject) -> None:
    """The line names one type alone, and its errors are not those of the others."""
    subject = make_subject(f"if x.dtype == torch.float16: x = x.clone(); x[:, 0] += 1\n{RIGHT}")
    assert subject.probe() is None
    trial = run_case(subject, histories.SEQUENCE, parse(f"{spelled(Step.AGAIN, Step.OTHER_TYPE)},seed=1"))
    (found,) = trial.findings
    assert found.text.startswith("given float16: ")
    assert all(metric.value <= 1 for metric in trial.metrics.values()), "those of float32"


def test_a_right_program_passes(make_subject: MakeSubject) -> None:
    body = "return x / x.abs().mean(1, keepdim=True)"
    seen = examined(make_subject, body)
    assert (seen.outcome, seen.findings) == ("passed", ())
    subject = make_subject(body)
    assert subject.probe() is None
    # Two are kept, one is looked at, one more is kept: each is a result of its own.
    line = spelled(Step.KEEP, Step.NEW_VALUES, Step.KEEP, Step.LOOK, Step.NEW_VALUES, Step.KEEP, Step.NEW_VALUES)
    assert engine.replay(subject, histories.SEQUENCE, parse(line)).findings == ()


def test_a_buffer_of_one_size_is_found_when_kept_results_are_looked_at(make_subject: MakeSubject) -> None:
    body = """
        key = (x.shape, x.dtype)
        y = BUFFERS.setdefault(key, torch.empty_like(x))
        return y.copy_(x / x.abs().mean(1, keepdim=True))
    """
    seen = examined(make_subject, body, head="BUFFERS = {}")
    assert seen.findings[0].kind is Kind.ALIASED_OUTPUT
    subject = make_subject(body, head="BUFFERS = {}")
    assert subject.probe() is None
    line = spelled(Step.KEEP, Step.NEW_VALUES, Step.LOOK)
    named = engine.replay(subject, histories.SEQUENCE, parse(line)).findings[0]
    assert named.text.startswith("an earlier result holds that of a later call: both lie in the same memory")


def test_a_cache_that_another_type_spoils_is_found(make_subject: MakeSubject) -> None:
    body = """
        rows = x.shape[0]
        if rows not in SCRATCH:
            SCRATCH[rows] = torch.empty(rows, 1, dtype=x.dtype)
        if x.dim() == 2:
            return (x / SCRATCH[rows].copy_(x.abs().mean(1, keepdim=True))).to(x.dtype)
        return x / x.abs().mean(1, keepdim=True)
    """
    assert examined(make_subject, body, head="SCRATCH = {}").outcome == "failed"


KEEPS = "last, self.last = self.__dict__.get('last'), x\n"
OTHER = "last is not None and last.shape == x.shape and last.data_ptr() != x.data_ptr()"


@pytest.mark.parametrize(
    ("then", "kind"),
    [("last.zero_()", Kind.INPUT_MODIFIED), ("last.sum()", None), ("x = last", Kind.WRONG_VALUE)],
    ids=["written", "read", "taken for the present one"],
)
def test_what_becomes_of_an_earlier_input_is_seen(then: str, kind: Kind | None, make_subject: MakeSubject) -> None:
    subject = make_subject(f"{KEEPS}if {OTHER}: {then}\n{RIGHT}")
    assert subject.probe() is None
    findings = engine.replay(subject, histories.EARLIER_INPUT, parse("shape=3x33,seed=1")).findings
    assert [each.kind for each in findings] == ([] if kind is None else [kind])
    if kind is Kind.INPUT_MODIFIED:
        assert findings[0].text.startswith("writes to the input of an earlier call, which its caller still has: 99")


def called_often(subject: Subject, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Examination:
    """In this process, where the time that the calls may take can be set: how fast the machine is decides nothing."""
    monkeypatch.setattr(worker_ways, "SECONDS_IN_A_ROW", seconds)
    subject.runner.isolated = False
    assert subject.probe() is None
    return engine.replay(subject, histories.MANY_CALLS, histories.MANY_CALLS.pinned[0])


def test_one_wrong_result_of_tens_of_thousands_is_found(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        CALLS[0] = (CALLS[0] + 1) & 0x7FFF
        return x.clone() if CALLS[0] == 0 else x / x.abs().mean(1, keepdim=True)
    """
    found = called_often(make_subject(body, head="CALLS = [0]"), 600, monkeypatch).findings[0]
    assert found.kind is Kind.WRONG_VALUE
    assert found.text.startswith("one of 66536 calls in a row: ")


def test_a_program_that_is_worn_out_is_found(make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        CALLS[0] += 1
        if CALLS[0] == 30000:
            SEEN.append(x.clone())
        return (SEEN[0] if SEEN else x) / (SEEN[0] if SEEN else x).abs().mean(1, keepdim=True)
    """
    found = called_often(make_subject(body, head="CALLS, SEEN = [0], []"), 600, monkeypatch).findings[0]
    assert found.text.startswith("after 66536 calls in a row: ")


def test_a_slow_program_is_called_less_often_and_that_is_said(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = called_often(make_subject(RIGHT), 0.1, monkeypatch)
    assert seen.findings == ()
    assert [note for note in seen.notes if note.startswith("slow: fewer than 66536 calls in a row")]
