"""Cases and layouts: every one can be printed as a shell-safe line and read back, and a bad line says what is bad."""

from __future__ import annotations

import shlex

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .. import layouts
from ..cases import FEATURES, Case, features, parse
from ..layouts import Layout
from ..reduction import reduce, size
from ..strategies import Domain, cases, planted
from ..values import Plant

EVERYTHING = Domain(frozenset(FEATURES))
QUICK = settings(max_examples=60, deadline=None, database=None)


@given(cases(EVERYTHING, layouts=True) | planted(EVERYTHING), st.integers(-90, 90))
@QUICK
def test_a_case_is_read_back_from_its_line(case: Case, turn: int) -> None:
    case = Case(case.shape, case.dtype, case.layout, case.values, case.seed, case.plants, turn)
    assert parse(str(case)) == case
    assert shlex.quote(str(case)) == str(case), "a shell would change the line"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "not NAME=VALUE"),
        ("dtype=float32", "has no shape=ROWSxCOLUMNS"),
        ("shape=3", "shape=3 is not two or more sizes"),
        ("shape=3x-1", "shape=3x-1 is not two or more sizes"),
        ("shape=ax3", "shape=ax3 is not two or more sizes"),
        ("shape=2x3,dtype=int8", "dtype=int8 is not one of float32"),
        ("shape=2x3,values=nice", "values=nice is not one of ones"),
        ("shape=2x3,layout=crooked", "unknown layout token 'crooked'"),
        ("shape=2x3,layout=order0.0", "does not name each of the 2 dimensions once"),
        ("shape=2x3,layout=expand2", "beyond the rank 2"),
        ("shape=2x3,layout=step0", "step must be at least 1"),
        ("shape=2x3,layout=cut2.1", "beyond the rank 2"),
        ("shape=2x3,layout=cut1", "unknown layout token 'cut1'"),
        ("shape=2x3,seed=x", "seed=x is not an integer"),
        ("shape=2x3,plants=nan@6", "lies outside an input of 6 elements"),
        ("shape=2x3,plants=big@1", "is not WHAT@INDEX"),
        ("shape=2x3,size=3", "'size=3' in the case line is not NAME=VALUE"),
    ],
)
def test_a_bad_line_is_refused_in_one_line_that_says_why(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(line)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(cases(EVERYTHING, elements=1 << 10, layouts=True, negated=True))
@QUICK
def test_a_geometry_fits_its_storage_and_no_two_elements_meet(case: Case) -> None:
    geometry = layouts.geometry(case.layout, case.shape)
    assert min(geometry.strides) >= 0
    storage = torch.zeros(geometry.length, dtype=torch.int64)
    view = storage.as_strided(case.shape, geometry.strides, geometry.offset)
    if case.numel == 0 or case.layout.lap:
        return
    index = tuple(slice(0, 1) if dim in case.layout.expand else slice(None) for dim in range(len(case.shape)))
    numbers = torch.arange(1, view[index].numel() + 1).view(view[index].shape)
    view[index] = numbers
    assert torch.equal(view[index], numbers), "two elements share a place"
    assert case.layout.cut or storage[-1] != 0, "the storage is longer than the view needs"


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("contiguous", (5, 1)),
        ("pitch3", (8, 1)),
        ("step2", (10, 2)),
        ("order1.0", (1, 4)),
        ("order1.0+pitch2", (1, 6)),
        ("expand0", (0, 1)),
        ("expand1", (1, 0)),
        ("offset7", (5, 1)),
        ("cut0.2", (5, 1)),
        ("cut1.2", (7, 1)),
        ("order1.0+cut0.2", (1, 6)),
        ("lap1", (1, 1)),
    ],
)
def test_layouts_mean_the_strides_that_torch_would_give(layout: str, strides: tuple[int, ...]) -> None:
    assert layouts.geometry(layouts.parse(layout), (4, 5)).strides == strides


def test_a_part_lies_in_its_storage_as_torch_cuts_it() -> None:
    whole = torch.empty(4, 5, 6)
    for dim in range(3):
        part = whole.narrow(dim, 0, 3)
        found = layouts.geometry(Layout(cut=(dim, whole.shape[dim] - 3)), tuple(part.shape))
        assert (found.strides, found.length) == (part.stride(), whole.numel())


def test_features_name_what_a_case_needs() -> None:
    assert features(Case((2, 3))) == {"fp32"}
    assert features(Case((2, 3), "float16", Layout(offset=1, step=2, negated=True))) == {
        "fp16", "offset", "strided", "negated",
    }  # fmt: skip
    assert features(Case((2, 3), layout=Layout(cut=(0, 2)))) == {"fp32"}
    assert features(Case((2, 3), layout=Layout(cut=(1, 2)))) == {"fp32", "strided"}
    assert features(Case((2, 3), layout=Layout(lap=1))) == {"fp32", "expanded"}
    assert features(Case((0, 3, 1), layout=Layout(expand=(0,)))) == {"fp32", "nd", "empty", "expanded"}


@pytest.mark.parametrize("edge", [1, 2, 3, 33, 1001, 65535])
def test_reduction_finds_the_edge_in_a_logarithm_of_questions(edge: int) -> None:
    questions: list[Case] = []

    def fails(case: Case) -> bool:
        questions.append(case)
        return case.columns >= edge

    start = Case((7, 65535, 3), "bfloat16", Layout(offset=3, order=(1, 0, 2)), "heavy", 99)
    found = reduce(start, fails)
    assert found == Case((1, edge), values="ones")
    assert len(questions) < 60


def test_reduction_keeps_what_the_failure_needs() -> None:
    def fails(case: Case) -> bool:
        return (
            case.layout.step > 1
            and case.dtype == "float16"
            and case.values == "tiny"
            and len(case.plants) > 0
            and case.numel >= 6
        )

    start = Case((9, 100), "float16", Layout(offset=1, step=3), "tiny", 5, (Plant("nan", 3), Plant("inf", 700)))
    found = reduce(start, fails)
    assert fails(found)
    assert (found.numel, found.layout, len(found.plants), found.seed) == (6, Layout(step=3), 1, 0)


def test_a_smaller_case_is_plainer() -> None:
    ones = Case((1, 1), values="ones")
    assert size(ones) < size(Case((1, 1), values="signed")) < size(Case((1, 1), "float16", values="ones"))
    assert size(Case((1, 1), "float64")) < size(Case((1, 1), layout=Layout(offset=1))) < size(Case((1, 2)))
