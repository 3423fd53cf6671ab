"""Recipes: bits that do not depend on how they are computed, values that the dtype holds, sums as exact as claimed."""

from __future__ import annotations

import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
import torch

from reference.formats import FORMATS, Format

from .. import values
from ..cases import DTYPES
from ..hashing import Grid
from ..inputs import bits
from ..strategies import EXACT, PLANTABLE
from ..values import Plant

#: CRC-32 of a few values of every recipe: a printed case means the same values in every version, on every machine.
KNOWN = {
    "grains": 323067692,
    "ones": 1560869703,
    "signed": 3287098098,
    "positive": 1907369880,
    "heavy": 1884713674,
    "mixed": 1593743232,
    "row-scales": 3933480958,
    "any-scale": 3083903516,
    "tiny": 1200073037,
    "huge": 3199601977,
    "integers": 3195665949,
    "exact-mean": 234137793,
    "one-hot": 2771084230,
    "one-full": 3891898599,
    "one-tall": 628420227,
    "sparse": 3287098098,
    "padded": 2677206898,
    "padded-before": 3623082421,
    "half": 3567957654,
    "sorted": 2815797335,
    "masked": 3579139274,
    "outlier": 2010253816,
    "alternating": 3492697178,
    "constant": 356256932,
    "zeros": 3380517425,
    "zero-rows": 1321292033,
    "near-max": 4026579563,
    "nearly-constant": 509630954,
    "levels": 4119683558,
    "shares": 755772505,
    "gaussian": 4080240018,
    "activations": 149337816,
    "mostly-positive": 1907369880,
    "negative": 3986076878,
    "nearly-alike": 1497226045,
    "unit-norm": 1903091796,
    "drifting": 4058469472,
    "falling": 2373716049,
    "coarse": 4119559136,
    "triangle": 3476222025,
    "dead-columns": 2777509789,
    "bias": 3970697464,
    "pixels": 2040903832,
    "samples": 2626308656,
    "alike-at-the-ends": 3977684643,
    "pruned": 1545253152,
    "real-parts": 3385103289,
    "positions": 1756719359,
    "diagonal": 1267397741,
    "bits": 1921819435,
    "timestamps": 851144618,
}


def test_a_case_means_the_same_values_for_ever() -> None:
    found = {name: zlib.crc32(values.fill((2, 5), "float64", name, 7).numpy().tobytes()) for name in values.RECIPES}
    assert found == KNOWN


@pytest.mark.parametrize("recipe", values.RECIPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_blocks(recipe: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = values.fill((3, 50, 2), dtype, recipe, 7)
    monkeypatch.setitem(values._BLOCK, "cpu", 13)
    assert torch.equal(bits(values.fill((3, 50, 2), dtype, recipe, 7)), bits(whole))


@pytest.mark.parametrize("recipe", values.RECIPES)
def test_a_row_does_not_depend_on_how_many_there_are(recipe: str) -> None:
    few, many = (values.fill((rows, 40), "float32", recipe, 3) for rows in (2, 9))
    assert torch.equal(bits(few), bits(many[:2].contiguous()))


@pytest.mark.parametrize("recipe", sorted({*values.RECIPES} - {"huge", "near-max"}))
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_exact_in_their_dtype(recipe: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recipe computes in float64 is what the dtype holds: nothing is rounded on the way."""
    computed: list[torch.Tensor] = []
    plain = values.RECIPES[recipe]

    def kept(grid: Grid, fmt: Format) -> torch.Tensor:
        computed.append(plain(grid, fmt))
        return computed[-1]

    monkeypatch.setitem(values.RECIPES, recipe, kept)
    filled = values.fill((5, 333), dtype, recipe, 11)
    assert torch.equal(filled.double().reshape(-1), torch.cat([part.reshape(-1) for part in computed]))
    assert filled.isfinite().all() == (recipe != "masked")


@pytest.mark.parametrize("recipe", ["huge", "near-max"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_values_are_finite(recipe: str, dtype: str) -> None:
    assert values.fill((9, 333), dtype, recipe, 1).isfinite().all()


@pytest.mark.parametrize("recipe", EXACT)
@pytest.mark.parametrize("columns", [1, 2, 1000, 65535, 5_000_000])
def test_sums_are_exact_in_float32_where_that_is_claimed(recipe: str, columns: int) -> None:
    row = values.fill((1, columns), "float32", recipe, 5).double().abs().numpy()[0]
    unit = 2.0 ** np.floor(np.log2(min(row[row != 0], default=1.0)))
    while not np.array_equal(row / unit, np.round(row / unit)):
        unit /= 2
    assert row.sum() / unit <= 2**24


def test_an_exact_mean_has_a_power_of_two_for_a_sum() -> None:
    for columns in (2, 64, 4096):
        rows = values.fill((4, columns), "float32", "exact-mean", 9).double().abs()
        for row in rows.tolist():
            total = sum(map(Fraction, row))
            assert total.numerator & (total.numerator - 1) == 0
            assert total.denominator & (total.denominator - 1) == 0


@pytest.mark.parametrize("recipe", sorted({*values.RECIPES} - {"ones", "zeros", "positive", "near-max"}))
def test_rows_differ(recipe: str) -> None:
    rows = values.fill((6, 64), "float32", recipe, 2)
    assert len({tuple(row) for row in rows.tolist()}) >= 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 33, 4097])
def test_any_scale_leaves_out_no_size_that_a_sum_can_have(dtype: str, columns: int) -> None:
    fmt, sums_in = FORMATS[dtype], FORMATS["float64" if dtype == "float64" else "float32"]
    # Of long rows no more are made than memory is there for: their scales are those of the first of many.
    rows = 3000 if columns < 4097 else 100
    largest = values.fill((rows, columns), dtype, "any-scale", 1).double().abs().amax(1).numpy()
    exponents = np.sort(np.frexp(largest[largest > 0])[1])
    assert columns * math.ldexp(1.0, int(exponents[-1]) - sums_in.overflow_exponent) < 1
    if rows == 3000:
        assert exponents[0] < fmt.quantum_exponent + 12
        assert exponents[-1] > fmt.overflow_exponent - 12
        assert np.diff(exponents).max() <= 12


def test_seeds_differ() -> None:
    left, right = (values.fill((2, 64), "float32", "signed", seed) for seed in (1, 2))
    assert not torch.equal(left, right)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", PLANTABLE)
def test_plants_stand_where_they_were_put(dtype: str, what: str) -> None:
    fmt = FORMATS[dtype]
    filled = values.fill((3, 4), dtype, "ones", 0, (Plant(what, 6),)).double().view(-1)
    wanted = values.special(what, fmt)
    assert np.array_equal(filled[6].item(), wanted, equal_nan=True)
    assert np.signbit(filled[6].item()) == np.signbit(wanted)
    assert (filled[[0, 5, 7, 11]] == 1).all()


def test_what_a_recipe_promises_by_name() -> None:
    tiny = values.fill((4, 99), "float32", "tiny", 1)
    assert (tiny.abs() < 2.0**-126).all()
    assert (tiny != 0).all()
    assert (values.fill((1, 99), "float32", "positive", 1) >= 0).all()
    signed = values.fill((1, 999), "float32", "signed", 1)
    assert (signed < 0).any()
    assert (signed > 0).any()
    zero_rows = values.fill((40, 9), "float32", "zero-rows", 1)
    dead = (zero_rows == 0).all(1)
    assert dead.any()
    assert not dead.all()
    scales = values.fill((60, 99), "float32", "row-scales", 1).abs().mean(1)
    assert scales.min() < 1e-15
    assert scales.max() > 1e15
    padding = (values.fill((9, 500), "float32", "padded", 1).flip(1) == 0).cummin(1).values.sum(1)
    assert len(set(padding.tolist())) > 5
    assert (padding <= 250).all()
    before = (values.fill((9, 500), "float32", "padded-before", 1) == 0).cummin(1).values.sum(1)
    assert len(set(before.tolist())) > 5
    assert (before <= 250).all()
    sparse = (values.fill((9, 5000), "float32", "sparse", 1) != 0).sum(1)
    assert (sparse > 3).all()
    assert (sparse < 40).all()
    for dtype in DTYPES:
        tall = values.fill((40, 99), dtype, "one-tall", 1).double().abs()
        assert (tall != 0).all()
        assert {0, 98} < {*tall.argmax(1).tolist()}
        assert (tall.amax(1) > 0.95 * tall.sum(1)).all()
    one_hot = values.fill((5, 99), "float32", "one-hot", 1)
    assert ((one_hot != 0).sum(1) == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_looks_like_something_is_what_it_looks_like(dtype: str) -> None:
    def of(recipe: str) -> torch.Tensor:
        return values.fill((64, 1031), dtype, recipe, 5).double()

    normal = of("gaussian")
    assert normal.mean(1).abs().max() < 0.15
    assert (normal.var(1) - 1).abs().max() < 0.2
    assert ((normal.abs().mean(1) - math.sqrt(2 / math.pi)).abs() < 0.08).all()
    active = of("activations")
    assert -0.172 < active.min() < -0.1
    assert (active.amax(1) > 1).all()
    mostly = (of("mostly-positive") < 0).double().mean(1)
    assert (mostly > 0).all()
    assert (mostly < 0.05).all()
    negative = of("negative")
    assert (negative < 0).all()
    assert negative.min() < -15.5
    alike = of("nearly-alike")
    assert (alike.amin(1) > 0).all()
    assert (alike.amax(1) < alike.amin(1) * 1.04).all()
    assert (alike.amax(1) > alike.amin(1)).all()
    assert torch.allclose(of("unit-norm").square().sum(1), torch.ones(64, dtype=torch.float64), atol=2e-3)
    drift = of("drifting")
    assert ((drift[1:] - drift[:-1]).abs() <= drift[:-1].abs() * (2**-6 if dtype == "bfloat16" else 2**-9)).all()
    falling = of("falling")
    assert (falling[:, 1:] < falling[:, :-1]).all()
    assert (falling[:, -1] < 0.002 * falling[:, 0]).all()
    assert (falling > 0).all()
    narrower = {"float32": torch.bfloat16, "float64": torch.float32}.get(dtype, torch.float8_e4m3fn)
    assert torch.equal(of("coarse") * 8, (of("coarse") * 8).to(narrower).double())
    triangle = values.fill((64, 64), dtype, "triangle", 5)
    assert torch.equal(triangle, triangle.tril())
    assert (triangle.tril() != 0).sum() > 1900
    dead = (of("dead-columns") == 0).all(0).double().mean()
    assert 0.08 < dead < 0.18
    assert (of("bias")[:, -1] == 1).all()
    pixels = of("pixels")
    assert (pixels == pixels.round()).all()
    assert pixels.min() == 0
    assert pixels.max() == 255
