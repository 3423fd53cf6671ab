"""The quick look at large inputs: it clears no row that the oracle rejects, and it clears what is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from reference import exact

from .. import inputs, l1_norm, l1_quick
from ..cases import parse
from . import programs

RECIPES = ("integers", "positive", "signed", "row-scales", "heavy", "one-hot", "near-max", "tiny", "zero-rows")
WRONG = (
    programs.by_sum,
    programs.by_one_column_more,
    programs.by_one_column_less,
    programs.by_padded_columns,
    programs.stored_as_bfloat16,
    programs.last_column_too_large,
    programs.last_column_left_out_of_the_sum,
    programs.by_one_global_mean,
    programs.by_the_neighbours_mean,
    programs.without_abs,
    programs.abs_of_the_result,
    programs.zeros,
    programs.twice_the_input,
    programs.the_input,
    programs.largest_element_only,
)


def oracle(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dtype = str(x.dtype).removeprefix("torch.")
    return torch.from_numpy(exact.judge_rows(x.double().numpy(), y.double().numpy(), dtype).ok)


def given(dtype: str, recipe: str, columns: int = 1025) -> torch.Tensor:
    return inputs.case_values(parse(f"shape=9x{columns},dtype={dtype},values={recipe},seed=3"))


@pytest.mark.filterwarnings("ignore:overflow encountered in accumulate")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_nothing_is_cleared_that_the_oracle_rejects(dtype: str, recipe: str) -> None:
    x = given(dtype, recipe)
    for program in (*WRONG, *programs.HONEST):
        y = program(x)
        wrong = l1_quick.cleared(x, y) & ~oracle(x, y)
        assert not wrong.any(), f"{program.__name__} is cleared in rows {wrong.nonzero().flatten().tolist()}"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("recipe", ["integers", "positive", "signed"])
def test_what_is_right_is_cleared(dtype: str, recipe: str) -> None:
    x = given(dtype, recipe, columns=4097)
    for program in (programs.eager, programs.through_double, programs.reciprocal):
        assert l1_quick.cleared(x, program(x)).all(), program.__name__


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: y[3].mul_(1.01),
        lambda y: y[3, 700:701].mul_(1.01),
        lambda y: y[3, 700:701].neg_(),
        lambda y: y[3, 700:701].fill_(float("nan")),
        lambda y: y[3, 700:701].fill_(float("inf")),
        lambda y: y[3].zero_(),
    ],
)
def test_one_wrong_element_keeps_its_row_from_being_cleared(spoil: Callable[[torch.Tensor], object]) -> None:
    x = given("float32", "signed")
    y = programs.eager(x)
    spoil(y)
    assert l1_quick.cleared(x, y).tolist() == [row != 3 for row in range(9)]


def test_the_sign_of_a_zero_counts() -> None:
    x = given("float32", "signed")
    x[2, 5] = -0.0
    y = programs.eager(x)
    assert l1_quick.cleared(x, y).all()
    y[2, 5] = 0.0
    assert not l1_quick.cleared(x, y)[2]


def test_quotients_beyond_the_type_are_infinite() -> None:
    x = torch.zeros(2, 200001, dtype=torch.float16)
    x[:, 7], x[:, 9] = -2.0, 1.0
    y = torch.zeros_like(x).copysign_(x)
    y[:, 7], y[:, 9] = -torch.inf, torch.inf
    y[1, 9] = 60000.0
    assert l1_quick.cleared(x, y).tolist() == [True, False]
    assert oracle(x, y).tolist() == [True, False]


def test_nothing_is_cleared_where_bits_may_be_asked_for_or_float64_would_have_to_be_exact() -> None:
    for dtype, columns in (("float32", 1024), ("float64", 1025)):
        x = given(dtype, "signed", columns)
        assert not l1_quick.cleared(x, programs.eager(x)).any()


@pytest.mark.parametrize("block", [7, 1025, 3000, 1 << 20])
def test_blocks_change_nothing(block: int) -> None:
    x = given("float32", "row-scales")
    y = programs.eager(x)
    y[4, 1000] *= 1.01
    assert l1_quick.cleared(x, y, block).tolist() == [row != 4 for row in range(9)]


def test_a_large_input_that_is_cleared_is_accepted_and_one_that_is_not_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(l1_norm, "_QUICK", {"cpu": 1})
    x = given("float32", "positive")
    y = programs.eager(x)
    quick = l1_norm.assess(x, y)
    assert quick.fault is None
    assert quick.metrics["scaling error / u"].value <= 2.02
    y[8, 1000] *= 1.01
    fault = l1_norm.assess(x, y).fault
    assert fault is not None
    assert fault.rows.tolist() == [8]


def test_a_few_rows_that_are_not_cleared_are_left_to_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l1_norm, "_QUICK", {"cpu": 1})
    x = inputs.case_values(parse("shape=99x1025,values=signed,seed=3"))
    y = programs.eager(x)
    assert l1_norm.assess(x, y).fault is None
    monkeypatch.setattr(l1_quick, "cleared", lambda x, _: torch.arange(len(x)) != 70)
    assert l1_norm.assess(x, y).fault is None
    y[70] *= 1.01
    fault = l1_norm.assess(x, y).fault
    assert fault is not None
    assert fault.rows.tolist() == [70]


def test_rows_too_long_to_measure_are_accepted_without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l1_norm, "_QUICK", {"cpu": 1})
    monkeypatch.setattr(l1_norm, "_LONGEST_MEASURED", 1000)
    x = given("float16", "integers")
    seen = l1_norm.assess(x, programs.through_double(x))
    assert (seen.fault, seen.metrics, seen.inaccurate) == (None, {}, "")
