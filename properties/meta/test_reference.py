"""The eager reference is what it says, the oracle accepts programs that are right and rejects those that are wrong."""

from __future__ import annotations

import functools
import math

import pytest
import torch

from properties.meta.programs import (
    ALL,
    HONEST,
    NARROW,
    WIDE,
    Program,
    abs_of_the_result,
    by_one_column_less,
    by_one_column_more,
    by_one_global_mean,
    by_padded_columns,
    by_sum,
    by_the_neighbours_mean,
    eager,
    in_half,
    largest_element_only,
    last_column_left_out_of_the_sum,
    last_column_too_large,
    mean_of,
    reciprocal_with_fallback,
    stored_as_bfloat16,
    the_input,
    through_double,
    twice_the_input,
    without_abs,
    zeros,
)
from reference import l1_norm
from reference.exact import judge_rows
from reference.explain import offending
from reference.verdict import Reason, Verdict, WholeRow

# The sharpest first: all sums of the first are exact in float32, so that its means must be right to a few roundoffs.
FAMILIES = ("sparse integers", "signed", "positive", "heavy-tailed", "small")

NAN, INF = math.nan, math.inf

# From one column over the edges of vectors, warps and blocks to a row of 4 MiB in float32.
LENGTHS = (1, 2, 3, 7, 31, 33, 255, 257, 1000, 4097, 65535, 1 << 20)


def judge(x: torch.Tensor, y: torch.Tensor) -> Verdict:
    """Judge a result of the input's dtype."""
    assert x.dtype == y.dtype
    return judge_rows(x.double().numpy(), y.double().numpy(), str(x.dtype))


@functools.cache
def rows_of(family: str, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """Return some rows whose means all differ; not to be changed, the next test gets the same tensor."""
    generator = torch.Generator().manual_seed(columns)
    rows = 4 if columns < 60000 else 2 if columns < 1 << 20 else 1
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    if family == "heavy-tailed":
        x = x**5
    elif family == "positive":
        x = x.abs()
    elif family == "small":
        x *= 2.0**-12 if dtype == torch.float16 else 2.0**-100
    elif family == "sparse integers":
        x = torch.round(x * 20.0)
        x[:, torch.randperm(columns, generator=generator)[1000:]] = 0.0
        x[:, 0] = 1.0
    x *= torch.arange(1, rows + 1)[:, None]
    return x.to(dtype)


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.__name__)
def test_a_program_that_is_right_is_accepted(program: Program) -> None:
    for dtype in HONEST[program]:
        for columns in LENGTHS:
            for family in FAMILIES if columns < 60000 else FAMILIES[:2] if columns < 1 << 20 else FAMILIES[:1]:
                x = rows_of(family, columns, dtype)
                verdict = judge(x, program(x))
                assert verdict.accepted, f"{dtype} {columns} columns, {family}: {verdict}"


# Which dtypes, the fewest and the most columns at which the fault is larger than what rounding may do, and the values.
# A column more or less is a relative error of 1/n, to be told from about 5 u_out (a mean and two roundings).
WRONG: list[tuple[Program, tuple[torch.dtype, ...], int, int, str]] = [
    (by_sum, ALL, 2, 1 << 20, "signed"),
    (by_sum, ALL, 2, 1 << 20, "sparse integers"),
    (by_one_column_more, WIDE, 1, 1 << 20, "sparse integers"),
    (by_one_column_more, (torch.float16,), 1, 257, "sparse integers"),
    (by_one_column_more, (torch.bfloat16,), 1, 33, "sparse integers"),
    (by_one_column_less, WIDE, 1, 1 << 20, "sparse integers"),
    (by_one_column_less, (torch.float16,), 1, 257, "sparse integers"),
    (by_one_column_less, (torch.bfloat16,), 1, 33, "sparse integers"),
    (by_padded_columns, WIDE, 1, 65535, "sparse integers"),
    (by_padded_columns, NARROW, 1, 33, "signed"),
    (in_half, WIDE, 3, 1 << 20, "signed"),
    (stored_as_bfloat16, (torch.float16, *WIDE), 3, 1 << 20, "signed"),
    (last_column_too_large, ALL, 2, 1 << 20, "signed"),
    (last_column_left_out_of_the_sum, WIDE, 1, 1000, "signed"),
    (by_one_global_mean, ALL, 255, 65535, "signed"),
    (by_the_neighbours_mean, ALL, 2, 65535, "signed"),
    (without_abs, ALL, 31, 1 << 20, "signed"),
    (abs_of_the_result, ALL, 31, 1 << 20, "signed"),
    (zeros, ALL, 1, 1 << 20, "signed"),
    (twice_the_input, ALL, 2, 1 << 20, "signed"),
    (the_input, ALL, 2, 1 << 20, "signed"),
    (largest_element_only, ALL, 2, 1 << 20, "signed"),
]


@pytest.mark.parametrize(
    ("program", "dtypes", "fewest", "most", "family"), WRONG, ids=lambda part: getattr(part, "__name__", None)
)
def test_a_program_that_is_wrong_is_rejected_in_every_row(
    program: Program, dtypes: tuple[torch.dtype, ...], fewest: int, most: int, family: str
) -> None:
    for dtype in dtypes:
        for columns in LENGTHS:
            if not fewest <= columns <= most or (program is by_padded_columns and columns % 32 == 0):
                continue
            x = rows_of(family, columns, dtype)
            verdict = judge(x, program(x))
            assert not verdict.ok.any(), f"{dtype} {columns} columns: {verdict}"


def test_zeros_for_a_whole_row_are_out_of_place_rather_than_a_mean() -> None:
    x = rows_of("signed", 33, torch.float32)
    for y, factor in ((torch.copysign(torch.zeros_like(x), x), INF), (torch.copysign(torch.full_like(x, INF), x), 0.0)):
        verdict = judge(x, y)
        assert (verdict.reason == Reason.SPECIAL).all()
        assert verdict.factor == pytest.approx(factor, abs=1e-30) if factor == 0 else (verdict.factor > 1e30).all()


@pytest.mark.parametrize("columns", [8, 256, 257, 65535])
def test_the_factor_names_a_wrong_count(columns: int) -> None:
    x = rows_of("sparse integers", columns, torch.float32)
    assert judge(x, by_sum(x)).factor == pytest.approx(columns, rel=1e-6)
    assert judge(x, by_one_column_more(x)).factor == pytest.approx(columns / (columns + 1), abs=0.1 / columns)
    verdict = judge(x, by_one_column_more(x))
    assert (verdict.reason == Reason.MEAN).all()
    assert (verdict.mean_error_in_units < -1).all()


def test_the_factor_of_a_torn_row_is_what_most_of_it_says() -> None:
    x = rows_of("signed", 65535, torch.float32)
    y = 3.0 * eager(x)
    y[:, 60000:] = 0.0
    y[:, 500] = math.nan
    verdict = judge(x, y)
    assert (verdict.reason == Reason.SPECIAL).all()
    assert verdict.factor == pytest.approx(1 / 3, rel=1e-3)
    assert judge(x, -eager(x)).factor == pytest.approx(-1.0, rel=1e-3)


def test_one_wrong_lane_does_not_speak_for_the_row() -> None:
    x = torch.randn(1, 65536, generator=torch.Generator().manual_seed(2))
    y = eager(x)
    y[:, ::32] *= 2.0
    verdict = judge(x, y)
    assert verdict.reason.tolist() == [Reason.SCALING]
    assert verdict.factor == pytest.approx(1.0, rel=1e-5)
    assert int(verdict.column[0]) % 32 == 0


@pytest.mark.parametrize("epsilon", [1e-12, 1e-10, 1e-8])
@pytest.mark.parametrize("dtype", WIDE)
def test_an_epsilon_is_seen_on_small_rows_of_every_length(epsilon: float, dtype: torch.dtype) -> None:
    for columns in LENGTHS:
        x = rows_of("sparse integers", columns, torch.float64).mul(2.0**-30).to(dtype)
        y = (x.double() / (mean_of(x.double()) + epsilon)).to(dtype)
        verdict = judge(x, y)
        assert not verdict.ok.any()
        mean = mean_of(x.double()).squeeze(1).numpy()
        assert verdict.factor == pytest.approx(1 + epsilon / mean, rel=1e-5)


def test_a_reciprocal_without_fallback_is_wrong_where_it_leaves_the_normal_range() -> None:
    for row in ([1e-39] * 8, [1e-39, -2e-39, 0.0, 5e-40]):
        x = torch.tensor([row])
        assert not judge(x, x * (1.0 / mean_of(x))).accepted
        assert judge(x, through_double(x)).accepted
        assert judge(x, reciprocal_with_fallback(x)).accepted


@pytest.mark.parametrize(("dtype", "sticks_at"), [(torch.float16, 2048), (torch.bfloat16, 256)])
def test_an_accumulator_of_the_storage_type_sticks_and_is_seen(dtype: torch.dtype, sticks_at: int) -> None:
    x = torch.ones(1, 65535, dtype=dtype)
    assert judge(x, eager(x)).accepted
    verdict = judge(x, (x.double() / (sticks_at / 65535)).to(dtype))
    assert not verdict.accepted
    assert verdict.factor == pytest.approx(sticks_at / 65535, rel=0.01)


def test_float16_sums_beyond_its_largest_number_are_right_in_float32() -> None:
    x = torch.full((1, 4096), 60000.0, dtype=torch.float16)
    assert judge(x, torch.ones_like(x)).accepted
    verdict = judge(x, torch.zeros_like(x))
    assert not verdict.accepted, "a float16 sum would overflow, a float32 sum does not"


def test_a_few_right_elements_do_not_excuse_zeros() -> None:
    x = torch.ones(1, 4096)
    x[0, 1234] = 1e9
    y = torch.where(x == 1e9, eager(x), 0.0)
    assert not judge(x, y).accepted
    assert offending(x[0].double().numpy(), y[0].double().numpy(), "float32").any()


@pytest.mark.parametrize(
    ("dtype", "row", "eagerly", "exactly"),
    [
        (torch.float32, [0.0, -0.0, 0.0], [NAN, NAN, NAN], None),
        (torch.float32, [1.0, INF, -2.0], [0.0, NAN, -0.0], None),
        (torch.float32, [1.0, NAN, INF], [NAN, NAN, NAN], None),
        (torch.float32, [1e-39] * 4, [1.0] * 4, None),
        (torch.float32, [1e-45, 0.0, 0.0, 0.0], [INF, NAN, NAN, NAN], [4.0, 0.0, 0.0, 0.0]),
        (torch.float32, [3e38, -3e38, 3e38, -3e38], [0.0, -0.0, 0.0, -0.0], [1.0, -1.0, 1.0, -1.0]),
        (torch.float16, [6e-8] + [0.0] * 1023, [INF] + [NAN] * 1023, [1024.0] + [0.0] * 1023),
        (torch.float64, [5e-324, 0.0, 0.0], [INF, NAN, NAN], [3.0, 0.0, 0.0]),
        (torch.float64, [1.7e308, 1.7e308], [0.0, 0.0], [1.0, 1.0]),
        (torch.bfloat16, [3e38, 3e38], [0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_the_semantics_of_eager_are_accepted_and_so_is_the_exact_answer(
    dtype: torch.dtype, row: list[float], eagerly: list[float], exactly: list[float] | None
) -> None:
    x = torch.tensor([row], dtype=dtype)
    y = eager(x)
    expected = torch.tensor([eagerly], dtype=dtype)
    assert torch.equal(y.isnan(), expected.isnan())
    assert torch.equal(y.nan_to_num(0.0), expected.nan_to_num(0.0))
    assert judge(x, y).accepted
    for wrong in (1.0, 0.0, -0.0, INF, NAN):
        changed = y.clone()
        changed[0, 0] = wrong
        same = changed[0, 0].equal(y[0, 0]) and math.copysign(1, wrong) == math.copysign(1, float(y[0, 0]))
        if not (same or (math.isnan(wrong) and y[0, 0].isnan())):
            assert not judge(x, changed).accepted, f"{wrong} for {y[0, 0]}"
    if exactly is not None:
        exact = torch.copysign(torch.tensor([exactly], dtype=dtype), x)
        verdict = judge(x, exact)
        assert verdict.accepted
        assert verdict.whole_row[0] == WholeRow.NO
        assert judge(x, y).whole_row[0] != WholeRow.NO


def test_every_sign_of_zero_counts() -> None:
    x = torch.tensor([[0.0, -0.0, 1.0, -1.0]])
    right = torch.tensor([[0.0, -0.0, 2.0, -2.0]])
    assert judge(x, right).accepted
    for j in range(4):
        wrong = right.clone()
        wrong[0, j] = -wrong[0, j]
        verdict = judge(x, wrong)
        assert verdict.reason.tolist() == [Reason.SPECIAL]
        assert verdict.column.tolist() == [j]
        assert offending(x[0].double().numpy(), wrong[0].double().numpy(), "float32").nonzero()[0].tolist() == [j]


def test_a_quotient_that_leaves_the_storage_type_is_infinite_alone() -> None:
    x = torch.zeros(1, 70000, dtype=torch.float16)
    x[0, 17] = -1.0
    y = x.clone()
    y[0, 17] = -INF
    assert judge(x, y).accepted, "70000 is beyond 65504"
    y[0, 17] = -60000.0
    assert not judge(x, y).accepted
    y[0, 17] = INF
    assert not judge(x, y).accepted


def test_a_mean_beyond_the_grade_is_reported_and_accepted() -> None:
    x = torch.rand(1, 65535, generator=torch.Generator().manual_seed(1))
    exact = mean_of(x.double())
    grade, limit = (65535 / 256 + 18) * 2.0**-24, 65535 * 2.0**-24
    for error, accepted, inaccurate in (
        (grade * 0.8, True, False),
        (grade * 1.3, True, True),
        (limit * 1.1, False, False),
    ):
        verdict = judge(x, (x / (exact * (1 + error))).float())
        assert verdict.accepted is accepted
        assert verdict.inaccurate.tolist() == [inaccurate]


def test_the_reference_is_a_kernelbench_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (l1_norm.batch_size, l1_norm.dim) == (32768, 65535)
    monkeypatch.setattr(l1_norm, "batch_size", 5)
    monkeypatch.setattr(l1_norm, "dim", 7)
    (x,) = l1_norm.get_inputs()
    assert x.shape == (5, 7)
    assert x.dtype == torch.float32
    assert 0 <= float(x.min()) <= float(x.max()) < 1
    y = l1_norm.Model(*l1_norm.get_init_inputs())(x)
    assert torch.equal(y, x / torch.mean(torch.abs(x), dim=1, keepdim=True))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 3, 4), (2, 1, 4, 5)])
def test_the_reference_keeps_the_shape(shape: tuple[int, ...]) -> None:
    assert eager(torch.ones(shape)).shape == shape


def test_the_reference_refuses_what_eager_refuses() -> None:
    with pytest.raises(IndexError):
        eager(torch.ones(3))
    with pytest.raises(RuntimeError):
        eager(torch.ones(2, 3, dtype=torch.int64))
