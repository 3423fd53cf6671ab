"""Strategies: what the default profile draws holds every dtype, layout, size class and recipe, and convicts the lazy.

A strategy that never draws something, or inputs on which a lazy program is right, would pass every test above it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import hypothesis
import pytest
import torch
from hypothesis import Phase, settings

from .. import catalogue, contract, coverage, inputs, values
from ..cases import DTYPES, FEATURES, Case, features, parse
from ..examination import Property
from ..l1_norm import L1_NORM
from ..layouts import Layout, geometry
from ..profiles import PROFILES, hypothesis_settings
from ..strategies import ORDINARY, Domain

EVERYTHING = Domain(frozenset(FEATURES))


#: Runs that are looked at together where single ones differ: Hypothesis likes to vary what it has just drawn, so a kind
#: that is one in eight on average may be absent from a run. (Each is pinned besides.)
RUNS = range(1, 6)


def drawn(
    prop: Property, count: int = PROFILES["kp-default"].examples, domain: Domain = EVERYTHING, *, seed: int = 1
) -> list[Case]:
    """As many cases of a property as the default profile draws."""
    found: list[Case] = []

    @hypothesis.seed(seed)
    @settings(hypothesis_settings(count, None), phases=(Phase.generate,))
    @hypothesis.given(prop.cases(domain, PROFILES["kp-default"]))  # type: ignore[misc]
    def draw(case: Case) -> None:
        found.append(case)

    assert prop.cases is not None
    draw()
    return found


def test_the_default_profile_draws_a_hundred_examples_of_every_property() -> None:
    assert PROFILES["kp-default"].examples >= 100
    assert PROFILES["kp-default"].long_examples >= 100


@pytest.mark.parametrize("name", ["shapes", "values", "layouts", "history", "odd", "scale-by-two"])
def test_every_dtype_is_drawn(name: str) -> None:
    counts = Counter(case.dtype for case in drawn(catalogue.CATALOGUE[name]))
    assert set(counts) == set(DTYPES)


def test_every_size_class_is_drawn() -> None:
    found = drawn(contract.SHAPES)
    lengths = [case.columns for case in found if case.numel]
    for low, high in ((1, 1), (2, 31), (32, 255), (256, 4096), (4097, ORDINARY)):
        assert any(low <= length <= high for length in lengths), f"no row of {low} to {high} columns"
    assert sum(length % 256 != 0 for length in lengths) > 30
    assert sum(length % 4 != 0 for length in lengths) > 20
    assert any(case.numel == 0 for case in found)
    assert any(len(case.shape) > 2 and case.shape[2] > 1 for case in found)
    assert any(case.rows == 1 for case in found)
    assert any(case.rows > 64 for case in found)
    assert max(case.numel for case in found) <= ORDINARY


def test_every_recipe_is_drawn() -> None:
    """Hypothesis draws some names often, some hardly ever: the ends of each type's range are pinned besides."""
    props = [catalogue.CATALOGUE[name] for name in ("shapes", "values", "specials", "exact-sums")]
    found = {case.values for prop in props for case in (*drawn(prop), *prop.pinned)}
    assert found == set(values.RECIPES)
    for dtype in DTYPES:
        pinned = {case.values for case in contract.VALUES.pinned if case.dtype == dtype}
        assert pinned >= {"tiny", "huge", "near-max", "row-scales", "any-scale", "zeros", "zero-rows", "outlier"}


def test_every_kind_of_layout_is_drawn() -> None:
    found = [case.layout for seed in RUNS for case in drawn(contract.LAYOUTS, seed=seed)]
    pinned = [case.layout for case in contract.LAYOUTS.pinned]
    kinds: dict[str, Callable[[Layout], bool]] = {
        "offset": lambda layout: layout.offset > 0 and not layout.strided,
        "pitch": lambda layout: layout.pitch > 0 and layout.step == 1 and not layout.order,
        "step": lambda layout: layout.step > 1,
        "order": lambda layout: bool(layout.order),
        "expand": lambda layout: bool(layout.expand),
        "cut": lambda layout: bool(layout.cut),
        "lap": lambda layout: layout.lap > 0,
    }
    for name, shown in kinds.items():
        assert sum(map(shown, found)) >= 3 * len(RUNS), name
        assert any(map(shown, pinned)), name
    assert not any(layout.negated for layout in found)
    assert all(case.layout.negated for case in drawn(contract.NEGATED, 20))


def test_every_special_value_is_planted() -> None:
    found = {plant.what for case in drawn(contract.SPECIALS) for plant in case.plants}
    assert found >= {"nan", "inf", "-inf", "-0", "max", "sub"}


def test_long_rows_and_many_rows_are_what_they_are_called() -> None:
    assert any(case.columns > 1 << 20 for case in drawn(contract.LONG_ROWS))
    assert any(case.rows > 65536 for case in drawn(contract.MANY_ROWS))


@pytest.mark.parametrize("name", [name for name, prop in catalogue.CATALOGUE.items() if prop.cases is not None])
def test_nothing_is_drawn_that_a_candidate_does_not_support(name: str) -> None:
    prop = catalogue.CATALOGUE[name]
    wanted = frozenset({"negated"}) if prop.promised == "negated" else frozenset[str]()
    for case in drawn(prop, 30, Domain(frozenset({"fp32"}))):
        assert features(case) - wanted == {"fp32"}


@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_pinned_cases_can_be_printed_and_built(name: str) -> None:
    for case in catalogue.CATALOGUE[name].pinned:
        if max(case.numel, geometry(case.layout, case.shape).length) < 1 << 20:
            assert inputs.build(case).logical.shape == case.shape


def fill_like(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.full_like(x, value)


LAZY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": fill_like(0.0),
    "ones": fill_like(1.0),
    "NaN": fill_like(float("nan")),
    "x": lambda x: x,
    "2x": lambda x: 2 * x,
    "sign": torch.sign,
    "no abs": lambda x: x / x.mean(1, keepdim=True),
    "a neighbour's mean": lambda x: x / x.abs().mean(1, keepdim=True).roll(1, 0),
    "the sum": lambda x: x / x.abs().sum(1, keepdim=True),
    "one mean for all": lambda x: x / x.abs().mean(),
}


def test_every_class_that_a_run_counts_is_drawn() -> None:
    """By the properties that look at everything between them; huge rows and many are drawn by two of their own."""
    props = (contract.SHAPES, contract.LAYOUTS, contract.NEGATED, contract.LONG_ROWS, contract.MANY_ROWS)
    counts = Counter(
        each for prop in props for seed in RUNS for case in drawn(prop, seed=seed) for each in coverage.classes(case)
    )
    rare = [
        (kind, name) for kind, names in coverage.CLASSES.items() for name in names if counts[kind, name] < 5 * len(RUNS)
    ]
    assert not rare, f"hardly ever drawn: {rare}"


def test_a_case_is_of_one_class_of_each_kind_and_of_all_layouts_that_apply() -> None:
    for case in drawn(contract.LAYOUTS):
        found = Counter(kind for kind, _ in coverage.classes(case))
        assert set(found) == set(coverage.CLASSES) - (set() if case.numel else {"columns", "rows"})
        assert all(count == 1 for kind, count in found.items() if kind != "layout")
        assert all(name in coverage.CLASSES[kind] for kind, name in coverage.classes(case))
    assert coverage.layouts(parse("shape=2x3,layout=offset1+step2")) == ["offset", "step"]
    regimes = {
        "shape=2x128": "row to 512 B",
        "shape=2x129": "row to 4 KB",
        "shape=2x65535": "row to 3.5 MB",
        "shape=2x65535,dtype=float16": "row to 3.5 MB",
        "shape=2x51200,dtype=float16": "row to 100 KB",
        "shape=1x1048576": "longer row",
        "shape=2x3x2": "columns apart",
        "shape=2x3x1": "row to 512 B",
        "shape=2x3,layout=order1.0": "columns apart",
        "shape=0x3": "empty",
    }
    assert {line: coverage.regime(parse(line)) for line in regimes} == regimes


@pytest.mark.parametrize("prop", [contract.SHAPES, contract.VALUES, contract.LAYOUTS], ids=lambda prop: prop.name)
def test_lazy_programs_are_wrong_on_what_is_drawn(prop: Property) -> None:
    """On one case in ten at least: of 25 examples of the quick profile one convicts, and mostly several do."""
    cases = [case for case in drawn(prop) if 0 < case.numel <= 1 << 15 and case.columns > 1]
    made = [inputs.build(case).logical for case in cases]
    assert len(made) > 15
    for name, program in LAZY.items():
        wrong = sum(L1_NORM.assess(x, program(x)).fault is not None for x in made)
        assert wrong >= len(made) / 10, f"{name} is right on {len(made) - wrong} of {len(made)} cases"
    right = [L1_NORM.assess(x, (x.double() / x.double().abs().mean(1, keepdim=True)).to(x.dtype)).fault for x in made]
    assert not any(right), "and an honest program is right on all of them"


def test_no_band_of_widths_is_left_out() -> None:
    columns = sorted(case.columns for case in contract.SHAPES.pinned if case.columns <= 8192)
    assert max(after - before for before, after in itertools.pairwise([0, *columns])) <= 256
    assert max(after - before for before, after in itertools.pairwise([0, *(c for c in columns if c <= 4096)])) <= 128
    assert any(3000 < each < 3100 for each in columns)
