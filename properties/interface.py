"""What the kernel refuses, and with which exception: the documented errors of an operator along dimension 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from . import strategies
from .cases import Case
from .examination import Property
from .findings import Finding, Kind
from .inputs import Input
from .layouts import Geometry
from .observation import Outcome
from .trial import Trial


@dataclass(frozen=True)
class Refusal:
    """One kind of input that has no result.

    Attributes:
        name: for reports.
        dtype: torch dtype name of the input.
        one_dimensional: whether the input is a vector of the case's columns.
        requires_grad: whether the input asks for a gradient.
        errors: names of exception classes, one of which the error must be (a subclass will do).
    """

    name: str
    dtype: str
    errors: tuple[str, ...]
    one_dimensional: bool = False
    requires_grad: bool = False


_DTYPE_ERRORS = ("TypeError", "RuntimeError", "NotImplementedError")
REFUSALS = (
    Refusal("a vector (rank 1)", "float32", ("IndexError",), one_dimensional=True),
    Refusal("an int64 matrix", "int64", _DTYPE_ERRORS),
    Refusal("an int32 matrix", "int32", _DTYPE_ERRORS),
    Refusal("a bool matrix", "bool", _DTYPE_ERRORS),
    Refusal("a complex64 matrix", "complex64", _DTYPE_ERRORS),
    Refusal("a complex128 matrix", "complex128", _DTYPE_ERRORS),
    Refusal("a uint8 matrix", "uint8", _DTYPE_ERRORS),
)


def refuses(trial: Trial, case: Case) -> None:
    """The input that ``case.turn`` names is refused, its memory is untouched, and the next call is right."""
    refusal = REFUSALS[case.turn % len(REFUSALS)]
    given = _input(refusal, case, trial.subject.home)
    seen = trial.observe(given)
    if seen.outcome is Outcome.RETURNED:
        trial.report(Finding(Kind.ACCEPTED_INVALID_INPUT, f"returns a result for {refusal.name}, expected an error"))
    if seen.outcome is not Outcome.RAISED or seen.damage:
        trial.verdict(given, seen)
    assert seen.error is not None
    if not set(seen.error.bases) & set(refusal.errors):
        wanted = " or ".join(refusal.errors)
        trial.report(Finding(Kind.WRONG_ERROR, f"answers {refusal.name} with {seen.error}, expected {wanted}"))
    trial.check(trial.build(Case(case.shape)))


def _input(refusal: Refusal, case: Case, device: str) -> Input:
    shape = case.shape[1:2] if refusal.one_dimensional else case.shape
    dtype: torch.dtype = getattr(torch, refusal.dtype)
    numel = 1
    for size in shape:
        numel *= size
    values = (torch.arange(numel, device=device) % 2).to(dtype)
    strides = (1,) if refusal.one_dimensional else (shape[1], 1)
    geometry = Geometry(strides, 0, numel)
    return Input(refusal.dtype, shape, geometry, False, values, values.reshape(shape), refusal.requires_grad)


ERRORS = Property(
    "errors",
    "What cannot be normalised is refused with the documented error, and the next call is right.",
    lambda *_: st.builds(
        lambda shape, turn: Case(shape, turn=turn), strategies.matrices(64), st.integers(0, len(REFUSALS) - 1)
    ),
    refuses,
    pinned=tuple(Case((2, 3), turn=turn) for turn in range(len(REFUSALS))),
    promised="errors",
)
