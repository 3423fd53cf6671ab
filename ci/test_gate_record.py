"""Tests of the gate's record: it comes back as it was written, and nothing that does not follow from it is believed."""

import json
from dataclasses import replace

import pytest

from ci import gate_record
from ci.gate_record import Case, Contestant, Estimate, Machine, Record, RecordError

_RATIO = Estimate(1.002, 0.998, 1.006)
SAME_CASE = Case(
    name="64x4095-float32",
    verdict="same",
    shape="64x4095",
    dtype="float32",
    layout="contiguous",
    bytes=2096640,
    rounds=15,
    ratio=_RATIO,
    candidate_of_copy=Estimate(0.97, 0.96, 0.98),
    base_of_copy=Estimate(0.97, 0.96, 0.98),
    control=Estimate(1.0, 0.999, 1.001),
    candidate_seconds=1e-3,
    base_seconds=1e-3,
    copy_seconds=9.7e-4,
)
UNMEASURED = Case(name="1x1-float32", verdict="not-measured", reason="missing", text="no test measures it")


def record(*cases: Case, **changes: object) -> Record:
    made = Record(
        date="2026-01-01T00:00:00+00:00",
        target="cuda",
        machine=Machine(
            "0.1.0", "3.12", "2.11", "NVIDIA H100", "580", "13.0", "Xeon", {"sm_mhz_lowest": 1980}, ("power",)
        ),
        candidate=Contestant("HEAD", "/a/kernels/l1_norm.py", "ab" * 32, "cd" * 20),
        base=Contestant("main", "/b/kernels/l1_norm.py", "ef" * 32, "01" * 20),
        comparison="interleaved",
        minimum=0.03,
        confidence=0.988,
        gate_confidence=0.999,
        seconds=61.5,
        cases=cases,
        notes=("a note",),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_record_comes_back_as_it_was_written() -> None:
    written = record(SAME_CASE, UNMEASURED)
    assert gate_record.read(gate_record.to_json(written)) == written


@pytest.mark.parametrize(
    ("verdicts", "whole", "code"),
    [
        ("same same", "same", 0),
        ("same faster", "faster", 0),
        ("same undecided", "undecided", 75),
        ("undecided not-measured", "not-measured", 69),
        ("not-measured slower faster", "slower", 1),
        ("", "not-measured", 69),
    ],
)
def test_the_worst_case_wins(verdicts: str, whole: str, code: int) -> None:
    cases = [UNMEASURED if word == "not-measured" else replace(SAME_CASE, verdict=word) for word in verdicts.split()]
    made = record(*cases)
    assert (made.verdict, made.exit_code) == (whole, code)


def test_an_internal_error_is_no_verdict() -> None:
    assert record(SAME_CASE, internal_errors=("KeyError",)).exit_code == 70


def test_equal_digests_are_the_same_code_and_unknown_ones_are_not() -> None:
    made = record(SAME_CASE)
    assert not made.same_code
    assert replace(made, base=replace(made.base, digest=made.candidate.digest)).same_code
    unknown = Contestant("a stored run")
    assert not replace(made, base=unknown, candidate=unknown).same_code


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("schema",), 2, "schema 2"),
        (("kind",), "verify", "kind 'verify'"),
        (("verdict",), "faster", "'same' follows from its cases"),
        (("exit_code",), 0.5, "0 follows from its cases"),
        (("cases", 0, "verdict"), "fine", "expected one of faster, same"),
        (("cases", 0, "ratio"), None, "without a ratio"),
        (("cases", 0, "ratio", "low"), "1", "ratio.low is no number"),
        (("cases", 0, "reason"), "missing", "only one of them says so"),
        (("machine", "throttled"), [1], "no text"),
        (("notes",), None, "notes is no list"),
    ],
)
def test_what_does_not_follow_is_not_believed(path: tuple[str | int, ...], value: object, words: str) -> None:
    document = json.loads(gate_record.to_json(record(SAME_CASE)))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(RecordError, match=words):
        gate_record.read(json.dumps(document))


def test_what_is_no_record_is_said_so() -> None:
    for text in ("", "[]", "{}"):
        with pytest.raises(RecordError):
            gate_record.read(text)
