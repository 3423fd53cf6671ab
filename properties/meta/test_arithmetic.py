"""How a worker sees that the processor does arithmetic otherwise: in the caller's thread, and in torch's."""

from __future__ import annotations

import pytest
import torch

from .. import worker_arithmetic
from ..cases import parse
from ..inputs import build
from .conftest import RIGHT, MakeRunner

SMALL, LARGE = "shape=64x512,seed=3", "shape=33x993,seed=3"
IN_THREADS = "in the threads that torch shares its work among"
HEAD = """
import ctypes, platform
torch.set_num_threads(2)
LIBM, UP = ctypes.CDLL("libm.so.6"), 0x400000 if platform.machine() == "aarch64" else 0x800
"""


def left(make: MakeRunner, body: str, head: str, *cases: str) -> tuple[str, ...]:
    """What the last of several calls in one process has left behind."""
    runner = make(body, head=HEAD + head)
    seen = [runner.observe(build(parse(case), "cpu")) for case in cases]
    assert seen[-1].meta is not None, seen[-1]
    return seen[-1].meta.left


def around(before: str, after: str) -> str:
    """A body that sets a mode for its arithmetic alone."""
    return f"{before}\ny = x / x.abs().mean(1, keepdim=True)\n{after}\nreturn y"


FLUSHING = around("torch.set_flush_denormal(True)", "torch.set_flush_denormal(False)")


def test_large_is_where_torch_begins_to_share_work_out() -> None:
    assert parse(SMALL).numel == worker_arithmetic.SHARED_OUT - 1
    assert parse(LARGE).numel == worker_arithmetic.SHARED_OUT


@pytest.mark.parametrize(
    ("elements", "device", "asked"), [(32769, "cpu", True), (32768, "cpu", False), (1 << 20, "cuda:0", False)]
)
def test_threads_are_asked_only_where_they_have_worked(elements: int, device: str, asked: bool) -> None:
    assert worker_arithmetic.are_at_work(elements, torch.device(device)) == asked


def test_a_process_that_nobody_touched_is_as_usual() -> None:
    assert worker_arithmetic.here() == worker_arithmetic.in_torchs_threads() == worker_arithmetic.USUAL


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (FLUSHING, f"subnormal numbers {IN_THREADS}: kept -> flushed to zero"),
        (around("LIBM.fesetround(UP)", "LIBM.fesetround(0)"), f"rounding {IN_THREADS}: to nearest -> up"),
    ],
)
def test_a_mode_that_torchs_threads_inherit_is_seen(body: str, words: str, make_runner: MakeRunner) -> None:
    assert left(make_runner, body, "", SMALL, LARGE) == (words,)


@pytest.mark.parametrize(
    ("body", "head"),
    [
        (RIGHT, ""),
        (FLUSHING, "torch.ones(1 << 20).abs()"),
        (RIGHT, "torch.set_flush_denormal(True)"),
        (RIGHT, "torch.ones(1 << 20).abs()\ntorch.set_flush_denormal(True)"),
        (FLUSHING, "torch.set_num_threads(1)"),
    ],
    ids=["usual", "threads first", "at import", "at import, threads first", "one thread"],
)
def test_what_leaves_them_as_they_were_is_not_accused(body: str, head: str, make_runner: MakeRunner) -> None:
    assert left(make_runner, body, head, SMALL, LARGE, LARGE) == ()


def test_the_callers_own_mode_is_told_once(make_runner: MakeRunner) -> None:
    body = around("", "LIBM.fesetround(UP)")
    assert left(make_runner, body, "torch.ones(1 << 20).abs()", LARGE) == ("rounding: to nearest -> up",)
