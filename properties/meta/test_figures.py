"""Two numbers that differ never look the same."""

from __future__ import annotations

import math

import pytest
import torch

from .. import figures, inputs, l1_norm
from ..cases import parse
from ..judge import value_finding

UP = math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (1.5, 1.25, ("1.5", "1.25")),
        (UP, 1.0, ("1.0000000000000002", "1")),
        (1.0, 1.0, ("1", "1")),
        (math.nan, math.nan, ("nan", "nan")),
        (math.inf, 1e308, ("inf", "1e+308")),
        (0.0, -0.0, ("0", "-0")),
        (2 / 3, math.nextafter(2 / 3, 1), ("0.6666666666666666", "0.6666666666666667")),
    ],
)
def test_numbers_get_the_digits_that_tell_them_apart(first: float, second: float, said: tuple[str, str]) -> None:
    assert figures.apart(first, second) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.5, 2.0, "0.5 to 2"),
        (1.0, UP, "1 to 1 + 2.22e-16"),
        (1 - 2**-53, UP, "1 - 1.11e-16 to 1 + 2.22e-16"),
        (3.0, math.nextafter(3.0, 4.0), "3 to 3.0000000000000004"),
        (UP, UP, "1 + 2.22e-16"),
        (7.0, 7.0, "7"),
    ],
)
def test_a_factor_near_one_is_told_by_its_distance(low: float, high: float, said: str) -> None:
    assert figures.factors(low, high) == said


def test_an_element_of_float64_that_is_wrong_in_its_last_digits_is_told_so() -> None:
    given = inputs.build(parse("shape=2x8,dtype=float64,values=ones"), "cpu")
    wrong = given.logical.clone()
    wrong[0, 3] += 2**-48
    fault = l1_norm.assess(given.logical, wrong).fault
    assert fault is not None
    found = value_finding(given, wrong, fault)
    assert "got 1.000000000000004, expected 1 within" in " ".join(found.details)


def test_means_of_float64_that_are_off_in_their_last_digits_are_told_so() -> None:
    given = inputs.build(parse("shape=4x300,dtype=float64,seed=3"), "cpu")
    off = 1 + torch.tensor([[1.0], [2.0], [5.0], [7.0]], dtype=torch.float64) * 2**-40
    wrong = given.logical / (given.logical.abs().mean(1, keepdim=True) * off)
    fault = l1_norm.assess(given.logical, wrong).fault
    assert fault is not None
    text = value_finding(given, wrong, fault).text
    assert "by 1 + 9.09e-13 to 1 + 6.37e-12 times the mean" in text
