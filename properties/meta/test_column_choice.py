"""Which CUDA kernel columns get that lie apart: tiles, few of them, slabs, and how wide their tiles are."""

from __future__ import annotations

import itertools

import pytest

from .choices import DEVICES, H200, KINDS, Choose, Plan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DEVICES)
def test_every_tile_of_columns_is_covered(choose: Choose, name: str, kind: str) -> None:
    device = DEVICES[name]
    for outer, columns, strip in itertools.product((1, 20), (129, 1000, 4096, 70000), (8, 20, 33, 1024, 1155, 50176)):
        plan = choose((outer, columns, strip), kind, device)
        assert plan.regime == "columns"
        per = plan.unit_bytes // KINDS[kind][1]
        tiles = plan.blocks // (outer * plan.team)
        assert plan.blocks == tiles * outer * plan.team
        assert (tiles - 1) * plan.width < strip <= tiles * plan.width
        assert 1 <= plan.across <= 256
        assert plan.shared <= device.shared_per_block
        assert plan.team <= device.max_cluster
        assert plan.unit_bytes == 16
        assert plan.grain == _grain(plan, strip, KINDS[kind][1])
        # From anywhere in its first grain a tile reaches to the end of its last, or of the strip.
        assert plan.grain - 1 + min(plan.width + plan.grain - 1, strip) <= plan.across * per


def _grain(plan: Plan, strip: int, size: int) -> int:
    """What tiles part between where strips lie behind each other: 1 if all begin with a sector, else a sector.

    Strips shorter than a line need begin with a vector only. All columns of a thread must begin at the same place of a
    grain: else it is a vector.
    """
    if strip * size % (16 if strip * size < 128 else 32) == 0:
        return 1
    apart = 256 // plan.across * plan.team
    assert apart * strip * size % 16 == 0
    return (32 if apart * strip * size % 32 == 0 else 16) // size


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_begin_with_a_vector_but_no_sector_share_sectors(choose: Choose, kind: str) -> None:
    """0.64 of a copy where tiles of 64 x 1000 x 1156 fp32 wrote half of a sector each, 0.92 where one writes it."""
    size = KINDS[kind][1]
    assert choose((64, 1000, 1152 * 4 // size), kind).grain == 1
    assert choose((64, 1000, 1156 * 4 // size), kind).grain == 32 // size
    # Input and output that differ by a vector have no sectors in common.
    assert choose((4096, 512), kind, strides=(1, 4096), out=(1, 4096 + 16 // size)).grain == 16 // size
    assert choose((4096, 512), kind, strides=(1, 4096), out=(1, 4096), offset=16 // size).grain == 16 // size


@pytest.mark.parametrize(
    ("shape", "kind", "across", "team"),
    [
        ((64, 1000, 33, 35), "fp32", 32, 8),
        ((64, 1000, 33, 35), "bf16", 16, 4),  # a larger team is not worth the fewer shared sectors
        ((64, 1000, 33, 35), "fp64", 32, 8),
        ((512, 300, 515), "bf16", 16, 2),
        ((64, 1000, 1152), "fp32", 8, 2),  # nothing is shared: a line is enough
        ((64, 1000, 1152), "bf16", 8, 2),
    ],
)
def test_wide_tiles_of_columns_are_weighed_against_large_teams(
    choose: Choose, shape: tuple[int, ...], kind: str, across: int, team: int
) -> None:
    plan = choose(shape, kind, H200)
    assert (plan.across, plan.team) == (across, team)


@pytest.mark.parametrize(
    ("shape", "kind", "regime", "unit_bytes"),
    [
        ((64, 3, 224, 224), "fp32", "few", 16),
        ((64, 3, 224, 224), "bf16", "few", 16),
        ((64, 3, 223, 223), "fp32", "few", 4),  # columns begin anywhere
        ((100000, 16, 32), "fp32", "few", 16),
        ((100, 16, 24), "fp32", "few", 4),  # less than a line
        ((100000, 17, 64), "fp32", "few", 4),  # more vectors than a thread has room for
        ((512, 32, 2048), "fp32", "few", 4),
        ((512, 33, 2048), "fp32", "columns", 16),
        ((512, 64, 2048), "bf16", "few", 2),
        ((512, 65, 2048), "bf16", "columns", 16),
        ((100, 64, 127), "fp64", "few", 8),
        ((100, 65, 40), "fp64", "columns", 16),
        ((100, 128, 47), "fp32", "few", 4),
        ((100, 128, 48), "fp32", "columns", 16),
        ((100, 128, 127), "fp16", "few", 2),
        ((100, 128, 128), "fp16", "columns", 16),
        ((100, 129, 16), "fp16", "columns", 16),
        ((100, 128, 3), "fp32", "strided", 0),
        ((100, 64, 3), "fp32", "few", 4),
        ((512, 2, 2048), "fp32", "few", 16),
    ],
)
def test_few_columns_are_a_threads_own(
    choose: Choose, shape: tuple[int, ...], kind: str, regime: str, unit_bytes: int
) -> None:
    plan = choose(shape, kind)
    assert (plan.regime, plan.unit_bytes) == (regime, unit_bytes)
    if regime == "few":
        assert plan.each >= shape[1]
        assert plan.blocks * plan.threads * plan.unit_bytes >= plan.rows * KINDS[kind][1]


@pytest.mark.parametrize(
    ("shape", "kind", "regime"),
    [
        ((10000, 3, 5), "fp32", "slab"),
        ((10000, 100, 2), "bf16", "slab"),
        ((10000, 700, 7), "fp32", "slab"),
        ((131, 700, 7), "fp32", "strided"),  # not one for each SM
        ((10000, 1755, 7), "fp32", "slab"),  # 48 KB
        ((10000, 1756, 7), "fp32", "strided"),
        ((10000, 511, 8), "fp32", "slab"),
        ((10000, 512, 8), "fp32", "columns"),  # many columns of whole sectors
        ((10000, 128, 32), "fp32", "few"),  # sectors, a line of them
        ((10000, 16, 36), "fp32", "few"),  # vectors, a line of them
        ((10000, 17, 36), "fp32", "slab"),
        ((10000, 129, 52), "fp32", "columns"),  # vectors of many rows
        ((10000, 2, 1023), "fp32", "slab"),
        ((10000, 2, 1025), "fp32", "few"),
        ((10000, 100, 39), "bf16", "slab"),
        ((10000, 100, 41), "bf16", "few"),
        ((10000, 200, 71), "bf16", "slab"),
        ((10000, 200, 73), "bf16", "columns"),
        ((10000, 200, 40), "bf16", "columns"),
    ],
)
def test_short_strips_are_read_slab_by_slab(choose: Choose, shape: tuple[int, ...], kind: str, regime: str) -> None:
    count, columns, strip = shape
    plan = choose(shape, kind)
    assert plan.regime == regime
    if regime == "slab":
        size = KINDS[kind][1]
        assert plan.blocks * plan.rows_each >= count
        assert plan.rows_each * strip * columns < 2**15, "so that element numbers divide exactly"
        assert plan.rows_each * strip * columns * size + plan.rows_each * strip * size <= plan.shared <= 99 << 10
        dense = (columns * strip, strip, 1)
        assert choose(shape, kind, strides=(columns * strip + 16, strip, 1), out=dense).regime != "slab"
        assert choose(shape, kind, strides=dense, out=dense, offset=1).regime != "slab"
        assert choose(shape, kind, strides=(columns * strip, 1, columns), out=dense).regime != "slab"


def test_few_columns_need_no_neighbours(choose: Choose) -> None:
    every_second = choose((1000, 5, 50), strides=(600, 100, 2), out=(250, 50, 1))
    assert (every_second.regime, every_second.unit, every_second.unit_bytes) == ("few", -1, 4)
    assert choose((1000, 65, 50), strides=(65 * 100, 100, 2), out=(65 * 50, 50, 1)).regime == "strided"
    # Rows that lie apart within: the kernels for rows are for elements behind each other.
    assert choose((1000, 5), strides=(20, 2), out=(5, 1)).regime == "few"


@pytest.mark.parametrize(
    ("strides", "out", "offset", "unit_bytes"),
    [
        ((1, 4096), (1, 4096), 0, 16),
        ((1, 4097), (1, 4096), 0, 4),
        ((1, 4096), (1, 4097), 0, 4),
        ((1, 4096), (1, 4096), 1, 4),
        ((1, 4096), (1, 4096), 4, 16),
        ((1, 4097), (1, 4097), 0, 16),
    ],
)
def test_16_bytes_at_once_need_input_and_output_aligned_alike(
    choose: Choose, strides: tuple[int, int], out: tuple[int, int], offset: int, unit_bytes: int
) -> None:
    assert choose((4096, 512), strides=strides, out=out, offset=offset).unit_bytes == unit_bytes
