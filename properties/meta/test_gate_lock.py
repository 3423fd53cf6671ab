"""One gate at a time on a card: the lock that it holds, and what becomes of those that cannot have it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci import gate_record, lock
from ci.exits import Stop
from ci.gate_record import Case

from .. import gate
from ..gate import Gate
from .gates import MakeGate, measured, reasons


def held(made: Gate) -> contextlib.AbstractContextManager[int]:
    made.lock_file.parent.mkdir(parents=True, exist_ok=True)
    return lock.held(made.lock_file, 0, pytest.fail)


def test_a_gate_beside_another_on_its_card_is_not_measured_and_says_whom_it_waited_for(
    make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LONGEST_WAIT", 0.3)
    told: list[str] = []
    made = make_gate(say=told.append)
    with held(made):
        found = measured(made)
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "busy"}, 69)
    assert told == [f"waiting for the gate on the CPU of process {os.getpid()} ({made.lock_file})"]
    assert found.cases[0].text.startswith(f"the gate on the CPU of process {os.getpid()} has not ended for 0 s")
    with held(made):
        pass


def test_a_gate_keeps_others_out_from_its_first_case_to_its_end(
    make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate.Gate, "_duel", lambda _, name: Case(name, "same", ratio=gate_record.Estimate(1, 1, 1)))
    made = make_gate(cases='[cpu]\n"a" = "shape=2x2"\n"b" = "shape=3x3"\n', say=pytest.fail)
    with held(made):
        pass
    for name in made.names:
        assert made.measure(name).verdict == "same"
        with pytest.raises(Stop), held(made):
            pass
    made._nursery = None  # the other tests', too
    made.close()
    with held(made):
        pass


def refuses(number: int) -> Callable[..., object]:
    def refused(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize(
    ("module", "name", "number"),
    [(fcntl, "flock", errno.ENOLCK), (os, "open", errno.EACCES), (Path, "mkdir", errno.EROFS)],
    ids=["a file system without locks", "another user's file", "a cache that cannot be written"],
)
def test_where_no_lock_can_be_had_the_gate_measures_and_says_what_to_do(
    module: object, name: str, number: int, make_gate: MakeGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate.Gate, "_duel", lambda _, name: Case(name, "same", ratio=gate_record.Estimate(1, 1, 1)))
    told: list[str] = []
    made = make_gate(cases='[cpu]\n"a" = "shape=2x2"\n"b" = "shape=3x3"\n', say=told.append)
    with monkeypatch.context() as system:
        system.setattr(module, name, refuses(number))
        assert [made.measure(each).verdict for each in made.names] == ["same", "same"]
    (line,) = told
    assert line.startswith(f"measured without a lock, {made.lock_file} cannot be locked ({os.strerror(number)}): ")
    assert "set KERNELPROOF_CACHE to " in line
    assert made.record().notes == (line,)
    made._nursery = None  # the other tests', too
    made.close()


def test_without_a_base_nobody_is_waited_for(make_gate: MakeGate) -> None:
    made = make_gate(base=None, say=pytest.fail)
    with held(made):
        assert reasons(measured(made)) == {"256x8192-float32": "no-baseline"}
