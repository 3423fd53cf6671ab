"""A figure comes from rows in which it means something; where there is none, there is no figure."""

from __future__ import annotations

import pytest
import torch

from ..l1_norm import L1_NORM

SCALING, LIMIT, ROUNDOFFS = "scaling error / u", "mean error / limit", "mean error / u"


def figures(x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    return {name: metric.value for name, metric in L1_NORM.assess(x, y).metrics.items()}


def rows(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(0.1, 3.0, 3 * 301, dtype=torch.float64).reshape(3, 301).to(dtype)


def normalised(x: torch.Tensor) -> torch.Tensor:
    wide = x.double()
    return (wide / wide.abs().mean(1, keepdim=True)).to(x.dtype)


def test_right_rows_have_all_three() -> None:
    found = figures(rows(), normalised(rows()))
    assert set(found) == {SCALING, LIMIT, ROUNDOFFS}
    assert found[SCALING] <= 1.01
    assert found[LIMIT] < 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_wrong_mean_is_as_far_off_in_roundoffs_as_it_is(dtype: torch.dtype) -> None:
    x = rows(dtype)
    found = figures(x, (x.double() / x.double().abs().sum(1, keepdim=True)).to(dtype))
    assert found[LIMIT] > 1000
    assert found[ROUNDOFFS] == pytest.approx(300 * 2**24, rel=0.01), "300 times the mean, in roundoffs of its float32"


def test_rows_that_no_mean_explains_have_no_error_of_a_mean() -> None:
    y = normalised(rows())
    y[:, ::2] *= 1.5
    assert set(figures(rows(), y)) == {SCALING}
    y[0] = normalised(rows())[0]
    assert figures(rows(), y)[LIMIT] < 1, "of the one row that has a mean"


def test_a_value_out_of_place_is_no_figure() -> None:
    y = normalised(rows())
    y[:, 7] = torch.nan
    assert figures(rows(), y) == {}


def test_a_mean_that_left_its_type_is_no_figure() -> None:
    x = torch.full((2, 4), 3e38)
    found = L1_NORM.assess(x, torch.zeros(2, 4))
    assert (found.fault, found.metrics) == (None, {})


def test_a_mean_that_is_rounded_to_the_storage_type_is_not_told_in_roundoffs_of_a_wider_one() -> None:
    x = rows(torch.float16)[2:3]
    near = torch.nextafter(x.double().mean(1, keepdim=True).half(), torch.tensor(9.0, dtype=torch.float16)).double()
    found = L1_NORM.assess(x, (x.double() / near).half())
    assert (found.fault, set(found.notes)) == (None, {"the mean is rounded to the storage type"})
    assert set(found.metrics) == {SCALING, LIMIT}
