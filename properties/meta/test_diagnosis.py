"""Diagnoses: every sentence is made from its fault, planted into a right result, and from no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from .. import diagnosis, inputs, l1_norm
from ..cases import parse
from ..inputs import Input
from ..judge import value_finding

Program = Callable[[torch.Tensor], torch.Tensor]


def mean(x: torch.Tensor) -> torch.Tensor:
    return x.abs().double().mean(1, keepdim=True)


def words(program: Program, line: str = "shape=5x301,seed=3") -> str:
    """What is said of a program's result; "" if it is right."""
    given = inputs.build(parse(line))
    output = program(given.logical).to(given.logical.dtype)
    fault = l1_norm.assess(given.logical, output).fault
    return "" if fault is None else value_finding(given, output, fault).text


def divided(divisor: Program) -> Program:
    return lambda x: x.double() / divisor(x)


ROWS = "shape=5x301,values=row-scales,seed=3"


@pytest.mark.parametrize(
    ("program", "line", "said"),
    [
        (divided(lambda x: mean(x) * 301), "", "exactly the factor 301 = columns: the sum was used where the mean"),
        (divided(lambda x: mean(x) * 301 / 302), "", "too large by exactly the factor 302/301: the sum was divided by "
         "columns + 1"),
        (divided(lambda x: mean(x) * 301 / 300), "", "too small by exactly the factor 301/300: the sum was divided by "
         "columns - 1"),
        (divided(lambda x: mean(x) * 301 / 512), "", "factor 512/301: the sum was divided by 512, a padded length"),
        (divided(lambda x: mean(x) * 2), "", "every value is too small by exactly the factor 2"),
        (divided(lambda x: mean(x) * 3e6), "", "every value is too small by exactly the factor 3000000"),
        (divided(lambda x: mean(x) / 3), "", "every value is too large by exactly the factor 3"),
        (divided(lambda x: mean(x) * 1.7), "", "every value is too small by the factor 1.7"),
        (divided(lambda x: mean(x) * 1.00005), "", "every value is too small by the factor 1 + 5e-05"),
        (divided(lambda x: -mean(x)), "", "every value has the wrong sign"),
        (divided(lambda x: x.double().mean(1, keepdim=True)), "", "the absolute value is missing"),
        (divided(lambda x: x.double().mean(1, keepdim=True).abs()), "", "the absolute value is taken too late"),
        (divided(lambda x: x.abs().double().amax(1, keepdim=True)), "", "divided by its largest magnitude"),
        (divided(lambda x: x.double().norm(dim=1, keepdim=True)), "", "divided by its Euclidean norm"),
        (divided(lambda x: x.double().square().mean(1, keepdim=True).sqrt()), "", "divided by its root mean square"),
        (divided(lambda x: x.abs().double().mean()), "", "one mean, that of the whole matrix, is used for every row"),
        (divided(lambda x: mean(x).roll(1, 0)), "", "divided by the mean of the row before it"),
        (divided(lambda x: mean(x).roll(-1, 0)), "", "divided by the mean of the row behind it"),
        (divided(lambda x: mean(x)[:1]), "", "every row is divided by the mean of row 0"),
        (divided(lambda x: mean(x[:, :256]) * 256 / 301), "", "256 of 301 columns are in the sum, which is divided by"),
        (divided(lambda x: mean(x[:, :256])), "", "first 256 of 301 columns are in the sum, which is divided by their"),
        (lambda x: x * 2, "", "every value is 2 times the input: no mean of a row is in it"),
        (divided(lambda x: mean(x) + 0.01), "", "divided by its mean plus about 0.01: an epsilon was added"),
        (divided(lambda x: mean(x) + 1e-12), ROWS, "its mean plus about 1e-12: an epsilon was added"),
        (divided(lambda x: mean(x).clamp_min(1e-8)), ROWS, "divided by 1e-08: an epsilon was added, or the mean"),
        (divided(lambda x: x.abs().double().mean(0, keepdim=True)), "", "taken along dimension 0, not along"),
        (divided(lambda x: x.abs().double().mean(2, keepdim=True)), "shape=2x5x7,seed=3", "taken along dimension 2"),
        (divided(lambda x: mean(x) * (1 + 2**-23)), "shape=5x64,values=ones", "too small by the factor 1 + 1.19e-07"),
        (lambda x: x * (1 / mean(x).float()), "shape=2x33,values=tiny,seed=1", "the reciprocal of the mean overflows"),
        (lambda x: x * float("nan"), "shape=2x33,values=tiny,seed=1", "subnormal inputs are taken for zeros"),
        (lambda x: x.half() / x.half().abs().mean(1, keepdim=True), "", "is a float16 number: the result went through"),
    ],
)  # fmt: skip
def test_a_cause_is_named(program: Program, line: str, said: str) -> None:
    assert said in words(program, line or "shape=5x301,seed=3")


def patched(change: Callable[[torch.Tensor, torch.Tensor], object]) -> Program:
    """The right result with something changed in it."""

    def program(x: torch.Tensor) -> torch.Tensor:
        y = (x.double() / mean(x)).to(x.dtype)
        change(y, x)
        return y

    return program


def fill(*place: slice | int | torch.Tensor, value: float) -> Program:
    def change(y: torch.Tensor, _: torch.Tensor) -> None:
        y[place] = value

    return patched(change)


def times(*place: slice | int, factor: float) -> Program:
    def change(y: torch.Tensor, _: torch.Tensor) -> None:
        y[place] *= factor

    return patched(change)


ALL = slice(None)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (fill(ALL, slice(256, None), value=0.0), "columns 256 and up are wrong, those below are right; zeros"),
        (fill(ALL, slice(0, 4), value=0.0), "columns below 4 are wrong, those from there on are right"),
        (fill(ALL, 300, value=float("nan")), "only the last column is wrong; NaN stands there"),
        (fill(ALL, 17, value=float("inf")), "only column 17 is wrong; infinities stand there"),
        (fill(ALL, slice(3, None, 32), value=9.0), "every 32th column is wrong, from column 3 on; 9 stands"),
        (times(ALL, 300, factor=1.0001), "only the last column is wrong; they are 1.0001 times what they should be"),
        (times(ALL, slice(280, None), factor=-1.0), "columns 280 and up are wrong, those below are right; the sign"),
        (times(2, ALL, factor=2.0), "every value is too large by exactly the factor 2; only row 2 of 5 is wrong"),
        (times(slice(3, None), ALL, factor=2.0), "rows 3 and up are wrong, those below are right"),
        (times(slice(0, 2), ALL, factor=2.0), "rows below 2 are wrong, those from there on are right"),
        (times(slice(2, 4), ALL, factor=2.0), "rows 2 to 3 of 5 are wrong"),
        (times(slice(0, None, 2), ALL, factor=2.0), "3 of 5 rows are wrong, the first is row 0"),
        (patched(lambda y, x: y.copy_(torch.where(x.abs() > 1.5, y * 1.01, y))), "elements of magnitude 1.50"),
        (patched(lambda y, x: y.copy_(torch.where(x.abs() < 0.05, y * 1.01, y))), "and below are wrong, larger"),
        (patched(lambda y, x: y[:, 250:].copy_(x[:, 250:])), "the input itself stands there"),
        (patched(lambda y, _: y.mul_(torch.linspace(1.1, 1.2, 301))), "1505 of 1505 elements looked at are wrong"),
    ],
)  # fmt: skip
def test_a_place_is_named(program: Program, said: str) -> None:
    assert said in words(program, "shape=5x301,seed=3")


def test_zeros_that_are_right_in_wrong_rows_are_no_place() -> None:
    said = words(divided(lambda x: mean(x) * 1.25), "shape=1x301,values=padded,seed=3")
    assert "every value is too small" in said
    assert "are right" not in said


def test_rows_that_start_off_a_16_byte_boundary_are_named() -> None:
    said = words(times(slice(1, None, 2), ALL, factor=2.0), "shape=6x302,seed=3")
    assert "right except in rows whose start is not 16-byte aligned" in said


@pytest.mark.parametrize("line", ["shape=5x301,seed=3", ROWS, "shape=5x301,dtype=float16,seed=3", "shape=3x1,seed=3"])
def test_nothing_is_said_of_a_right_result(line: str) -> None:
    assert not words(divided(mean), line)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_short_rows_claim_no_padded_length_and_no_neighbouring_count(columns: int) -> None:
    said = words(divided(lambda x: mean(x) * columns / (columns + 1)), f"shape=1x{columns},values=signed,seed=3")
    assert said
    assert "columns + 1" not in said
    assert "padded" not in said


def test_subnormal_numbers_are_not_taken_for_zeros_where_some_rows_of_them_are_right() -> None:
    """As of a scale that overflows for the smallest of them only."""

    def program(x: torch.Tensor) -> torch.Tensor:
        small = mean(x) <= mean(x).median()
        return torch.where(small, torch.nan, x.double() / mean(x))

    said = words(program, "shape=5x33,values=tiny,seed=1")
    assert "rows are wrong" in said
    assert "taken for zeros" not in said


def test_canaries_in_a_result_are_taken_for_what_they_are() -> None:
    given = inputs.build(parse("shape=2x4,layout=step2,seed=3"))
    read: Input = given
    flat = read.storage[:8].reshape(2, 4)
    fault = l1_norm.assess(given.logical, flat / flat.abs().mean(1, keepdim=True)).fault
    assert fault is not None
    assert "elements outside the view were read" in diagnosis.describe(given, fault)
