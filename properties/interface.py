"""What the kernel refuses, and with which exception: the documented errors of an operator along dimension 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st

from . import judge, strategies
from .cases import Case
from .examination import Property
from .findings import Finding, Kind
from .inputs import Input
from .layouts import Geometry
from .manner import Manner
from .observation import Outcome
from .trial import Trial


@dataclass(frozen=True)
class Refusal:
    """One kind of input that has no result.

    Attributes:
        name: for reports.
        errors: names of exception classes, one of which the error must be (a subclass will do).
        rank: of the input: 2 for the case's shape, 1 for a vector of its columns, 0 for a single number.
        stand_in: name of `worker_ways.STAND_INS`: what is handed over in the tensor's place; "" for the tensor.
    """

    name: str
    dtype: str
    errors: tuple[str, ...]
    rank: int = 2
    stand_in: str = ""


_DTYPE_ERRORS = ("TypeError", "RuntimeError", "NotImplementedError")
REFUSALS = (
    Refusal("a vector (rank 1)", "float32", ("IndexError",), rank=1),
    Refusal("an int64 matrix", "int64", _DTYPE_ERRORS),
    Refusal("an int32 matrix", "int32", _DTYPE_ERRORS),
    Refusal("a bool matrix", "bool", _DTYPE_ERRORS),
    Refusal("a complex64 matrix", "complex64", _DTYPE_ERRORS),
    Refusal("a complex128 matrix", "complex128", _DTYPE_ERRORS),
    Refusal("a uint8 matrix", "uint8", _DTYPE_ERRORS),
    Refusal("an int8 matrix", "int8", _DTYPE_ERRORS),
    Refusal("a float8_e4m3fn matrix", "float8_e4m3fn", _DTYPE_ERRORS),
    Refusal("a number (rank 0)", "float32", ("IndexError",), rank=0),
    Refusal("an integer vector", "int64", ("IndexError", *_DTYPE_ERRORS), rank=1),
    Refusal("a list of rows", "float32", ("TypeError", "AttributeError"), stand_in="list"),
    Refusal("None", "float32", ("TypeError", "AttributeError"), stand_in="None"),
    Refusal("a Python number", "float32", ("TypeError", "AttributeError"), stand_in="number"),
    Refusal("a numpy array", "float32", ("TypeError", "AttributeError"), stand_in="ndarray"),
    Refusal("a sparse matrix (COO)", "float32", _DTYPE_ERRORS, stand_in="sparse"),
    Refusal("a sparse matrix (CSR)", "float32", _DTYPE_ERRORS, stand_in="csr"),
)

#: What a call behind a refusal may be on, beside what was refused: a way that is taken from then on has more to do.
_LARGER = Case((9, 1031), values="signed", seed=35)


def refuses(trial: Trial, case: Case) -> None:
    """The input that ``case.turn`` names is refused, its memory is untouched, and the next calls are right.

    That the next calls are right is everybody's duty, and looked at before the error, which is only told of most.
    """
    refusal = REFUSALS[case.turn % len(REFUSALS)]
    given = _input(refusal, case, trial.subject.home)
    seen = trial.observe(given, manner=Manner(stand_in=refusal.stand_in))
    if seen.outcome not in (Outcome.RETURNED, Outcome.RAISED) or (seen.damage and seen.outcome is Outcome.RAISED):
        trial.verdict(given, seen)
    if seen.error is not None and (found := judge.left_behind(seen.error.left)):
        trial.report(*(replace(each, text=f"where it refuses {refusal.name}: {each.text}") for each in found))
    for after in (Case(case.shape), _LARGER):
        then = trial.build(after)
        what = "" if after.shape == case.shape else f", on {'x'.join(map(str, after.shape))}"
        trial.verdict(then, trial.observe(then), f"after it was given {refusal.name}{what}")
    if seen.error is None:
        trial.report(Finding(Kind.ACCEPTED_INVALID_INPUT, f"returns a result for {refusal.name}, expected an error"))
    elif not set(seen.error.bases) & set(refusal.errors):
        wanted = " or ".join(refusal.errors)
        trial.report(Finding(Kind.WRONG_ERROR, f"answers {refusal.name} with {seen.error}, expected {wanted}"))


def _input(refusal: Refusal, case: Case, device: str) -> Input:
    shape = {0: (), 1: case.shape[1:2], 2: case.shape}[refusal.rank]
    dtype: torch.dtype = getattr(torch, refusal.dtype)
    numel = math.prod(shape)
    values = (torch.arange(1, numel + 1, device=device) % 2).to(dtype)
    geometry = Geometry((shape[1], 1) if refusal.rank == 2 else (1,) * refusal.rank, 0, numel)
    return Input(refusal.dtype, shape, geometry, False, values, values.reshape(shape))


ERRORS = Property(
    "errors",
    "What cannot be normalised is refused with the documented error, and the next calls are right.",
    lambda *_: st.builds(
        lambda shape, turn: Case(shape, turn=turn), strategies.matrices(64), st.integers(0, len(REFUSALS) - 1)
    ),
    refuses,
    pinned=tuple(Case((2, 3), turn=turn) for turn in range(len(REFUSALS))),
    promised="errors",
)
