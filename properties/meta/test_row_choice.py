"""Which CUDA kernel rows get whose elements lie behind each other: where neighbouring sizes fall, on which card."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from .choices import DEVICES, H100, H200, KINDS, Choose


@pytest.mark.parametrize(
    ("columns", "regime"),
    [
        (1, "group"),
        (1024, "group"),
        (1025, "block"),
        (16384, "block"),
        (18912, "block"),
        (18913, "cluster"),
        (65535, "cluster"),
        (65536, "cluster"),
        (262143, "cluster"),
        (302592, "cluster"),
        (302593, "grid"),
        (8388608, "grid"),
        (52000000, "grid"),
        (53000000, "sweeps"),
        (1 << 28, "sweeps"),
    ],
)
def test_neighbouring_sizes_fall_where_the_table_says(choose: Choose, columns: int, regime: str) -> None:
    assert choose((4096, columns)).regime == regime


def test_the_headline_row_is_a_cluster_of_four_wherever_it_starts(choose: Choose) -> None:
    for columns, offset in itertools.product((65535, 65536), (0, 1, 3, 31)):
        plan = choose((32768, columns), offset=offset)
        assert (plan.regime, plan.team, plan.blocks) == ("cluster", 4, 4 * 32768)


def test_few_rows_are_spread_over_more_blocks(choose: Choose) -> None:
    assert choose((1, 65535)).team == 16
    assert choose((16, 65535)).team == 16
    assert choose((128, 1024)).blocks == 128


def test_fast_memory_gives_shorter_rows_to_blocks_that_stay(choose: Choose) -> None:
    for columns in (82369, 262143):
        assert choose((4096, columns), device=H100).regime == "cluster"
        assert choose((4096, columns), device=H200).regime == "grid"
    # Not where all rows run at once, nor where such a launch is not to be had.
    assert choose((49, 131072), device=H200).regime == "cluster"
    assert choose((50, 131072), device=H200).regime == "grid"
    assert choose((4096, 262143), device=replace(H200, cooperative=False)).regime == "cluster"


def test_few_rows_are_kept_in_registers_on_any_card(choose: Choose) -> None:
    for name, device in DEVICES.items():
        for rows in (1, 16 * device.sms - 1):
            for columns, kind in ((1025, "fp32"), (10000, "fp32"), (17871, "bf16"), (4467, "fp64")):
                assert choose((rows, columns), kind, device).regime == "registers", (name, rows, columns)
            assert choose((rows, 10300), device=device).regime != "registers"  # more than they hold
        if device.memory <= H100.memory:
            assert choose((16 * device.sms, 1025), device=device).regime == "block", name


def test_rows_of_16_bits_whose_lanes_have_work_are_tiled_on_no_fast_memory(choose: Choose) -> None:
    at_work = {255, 241, 1023}
    for columns in {*at_work, 256, 231, 700}:
        regime = "group" if columns in at_work else "tile"
        assert choose((1 << 20, columns), "bf16", H200).regime == regime, columns
        assert choose((1 << 20, columns), "bf16", H100).regime == "tile"
        assert choose((1 << 20, columns), "fp32", H200).regime == "tile"


@pytest.mark.parametrize(
    ("columns", "kind", "regime", "an_sm"),
    [
        (1031, "fp32", "block", 36),
        (1061, "fp32", "registers", 0),
        (7143, "fp32", "registers", 0),
        (7144, "fp32", "block", 7),  # two blocks of 28 KB in registers would be too little under way
        (9215, "fp32", "block", 2),
        (9216, "fp32", "registers", 0),  # two of 36 KB are not
        (10215, "fp32", "registers", 0),
        (10216, "fp32", "block", 2),
        (10240, "fp32", "registers", 0),  # each begins at a line
        (28615, "fp32", "block", 2),
        (28616, "fp32", "cluster", 0),
        (30719, "fp32", "cluster", 0),
        (30720, "fp32", "alone", 1),
        (65535, "fp32", "alone", 1),
        (76231, "fp32", "alone", 1),
        (76232, "fp32", "grid", 0),
        (4095, "bf16", "registers", 0),
        (12751, "bf16", "registers", 0),
        (12752, "bf16", "block", 8),
        (14847, "bf16", "block", 7),
        (17871, "bf16", "block", 6),
        (26623, "bf16", "block", 4),
        (26624, "bf16", "block", 2),
        (61440, "bf16", "alone", 1),
        (115599, "bf16", "alone", 1),
        (115600, "bf16", "cluster", 0),
        (2048, "fp64", "registers", 0),
        (3187, "fp64", "registers", 0),
        (3188, "fp64", "block", 8),
        (4467, "fp64", "block", 2),
        (15360, "fp64", "alone", 1),
        (28899, "fp64", "alone", 1),
        (28900, "fp64", "cluster", 0),
    ],
)
def test_fast_memory_has_fewer_bytes_under_way(
    choose: Choose, columns: int, kind: str, regime: str, an_sm: int
) -> None:
    plan = choose((32768, columns), kind, H200)
    assert plan.regime == regime
    if an_sm:
        static = 1152 + 1024
        assert H200.shared_per_sm // (plan.shared + static) == an_sm
    assert choose((32768, columns), kind, H100).regime in ("block", "cluster")


def test_many_rows_are_so_many_for_every_multiprocessor(choose: Choose) -> None:
    for rows, shorter, longer in ((2111, "registers", "cluster"), (2112, "block", "alone")):
        assert choose((rows, 8192), device=H200).regime == shorter  # 32 KB, twice an SM
        assert choose((rows, 65536), device=H200).regime == longer
    assert choose((2111, 16384), device=H200).shared < choose((2112, 16384), device=H200).shared


def test_a_row_stays_in_registers_where_its_result_begins_as_it_does(choose: Choose) -> None:
    for columns, there in ((4095, "registers"), (65535, "alone")):
        shape = (4096, columns)
        assert choose(shape, device=H200).regime == there
        assert choose(shape, device=H200, offset=4).regime == there
        assert choose(shape, device=H200, offset=1).regime != there
        assert choose(shape, device=H200, strides=(columns + 4, 1), out=(columns, 1)).regime == there
        assert choose(shape, device=H200, strides=(columns + 1, 1), out=(columns, 1)).regime != there


@pytest.mark.parametrize(
    ("columns", "kind", "teams"),
    [
        # Half the chip keeps 4.36 million columns; of longer rows it reads a part twice, while the L2 cache keeps that.
        (4358000, "fp32", 2),
        (4366000, "fp32", 2),
        (7000001, "fp32", 2),
        (7100001, "fp32", 2),
        (7300001, "fp32", 1),
        (8388607, "fp32", 1),
        (8388609, "bf16", 2),
        (2500001, "fp64", 2),
        (4194304, "fp64", 1),
    ],
)
def test_rows_of_half_the_chip_and_more_have_two_teams(choose: Choose, columns: int, kind: str, teams: int) -> None:
    plan = choose((64, columns), kind)
    assert (plan.regime, plan.teams, plan.team) == ("grid", teams, 396 // teams)
    assert choose((1, columns), kind).teams == 1


@pytest.mark.parametrize(
    ("columns", "kind", "regime", "teams"),
    [
        (1386001, "fp32", "grid", 6),
        (1461001, "fp32", "ahead", 5),
        (1700001, "fp32", "ahead", 5),
        (2097153, "fp32", "ahead", 4),
        (4194305, "fp32", "ahead", 2),
        (4400001, "fp32", "ahead", 1),
        (8388608, "fp32", "ahead", 1),
        (8713000, "fp32", "ahead", 1),
        (8715000, "fp32", "grid", 1),
        (8388609, "bf16", "ahead", 2),
        (2097152, "fp64", "ahead", 2),
        (4194305, "fp64", "ahead", 1),
    ],
)
def test_fast_memory_begins_the_next_row_of_a_fifth_of_the_chip_and_more(
    choose: Choose, columns: int, kind: str, regime: str, teams: int
) -> None:
    plan = choose((64, columns), kind, H200)
    assert (plan.regime, plan.teams) == (regime, teams)
    assert choose((64, columns), kind, H100).regime == "grid"
    if regime == "ahead":
        assert choose((teams + 1, columns), kind, H200).regime == "ahead"
        assert choose((teams, columns), kind, H200).regime == "grid"
        assert choose((64, columns), kind, H200, strides=(columns + 1, 1), out=(columns, 1)).regime == "grid"
        assert choose((64, columns), kind, replace(H200, cooperative=False)).regime == "sweeps"
        assert choose((64, columns), kind, replace(H200, max_cluster=8)).regime == "grid"
        assert choose((2, columns, 32), kind, H200, strides=(40 * columns, 1, columns)).regime != "ahead"


@pytest.mark.parametrize(
    ("columns", "kind", "slow", "fast"),
    [
        (4095, "bf16", 128, 128),
        (2561, "fp16", 64, 32),
        (8191, "bf16", 256, 224),
        (13500, "bf16", 256, 256),
        (14300, "bf16", 256, 384),
        (16383, "bf16", 256, 384),
        (32767, "bf16", 256, 384),
        (65535, "bf16", 256, 768),
        (65535, "fp32", 256, 768),
        (16384, "fp64", 256, 1024),
        (4096, "fp32", 256, 256),
        (8191, "fp32", 256, 384),
        (10000, "fp32", 256, 640),
        (2049, "fp32", 128, 160),
        (12289, "fp32", 256, 384),
    ],
)
def test_fast_memory_asks_for_other_threads(choose: Choose, columns: int, kind: str, slow: int, fast: int) -> None:
    assert choose((32768, columns), kind, H100).threads == slow
    assert choose((32768, columns), kind, H200).threads == fast
    assert choose((32768, columns), kind, replace(H200, memory=0)).threads == slow


ROWS = (1, 3, 16, 131, 4096, 1 << 20)
SHORT = (1, 2, 3, 7, 8, 9, 64, 127, 128, 129, 255, 1000, 1023, 1025)
LONG = (4095, 65535, 65536, 262143, 849999, 8388607, 1 << 28)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DEVICES)
def test_every_plan_fits_its_device_and_holds_its_rows(choose: Choose, name: str, kind: str) -> None:
    device = DEVICES[name]
    per = 16 // KINDS[kind][1]
    for rows, columns, offset in itertools.product(ROWS, SHORT + LONG, (0, 1)):
        plan = choose((rows, columns), kind, device, offset=offset)
        label = f"{rows} x {columns} {kind}: {plan}"
        assert 0 < plan.blocks < 2**31, label
        assert plan.team <= device.max_cluster or plan.regime in ("grid", "ahead"), label
        vectors = columns // per + 7 * (offset > 0)
        match plan.regime:
            case "group":
                edges = 2 * (per - 1) if offset or columns % per else 0
                assert plan.lanes * plan.each >= columns // per, label
                assert plan.lanes >= edges, label
                assert plan.blocks * (plan.threads // plan.lanes) >= rows, label
            case "tile":
                row = columns * KINDS[kind][1]
                long, short, tiny = ((384, 4), (256, 3), (128, 3)) if plan.fast else ((512, 2), (256, 2), (256, 2))
                threads, each = long if row > 512 else tiny if row < 16 else short
                assert plan.threads == threads, label
                assert plan.rows_each * row <= threads * each * 16, label
                assert plan.lanes <= 32, label
                assert plan.blocks * plan.rows_each >= rows, label
            case "block" | "cluster":
                assert plan.held * plan.team >= vectors, label
                assert plan.shared + 2048 <= device.shared_per_block, label
                assert plan.threads * plan.team // 32 <= 16 * 8, label
                assert plan.blocks == rows * plan.team, label
            case "registers":
                assert plan.threads * (4 if kind == "fp32" else 5) >= vectors, label
                assert plan.threads <= (640 if kind == "fp32" else 448), label
                assert (plan.blocks, plan.shared) == (rows, 0), label
            case "alone":
                assert plan.held + plan.threads * (6 if kind == "fp32" else 0) >= plan.slice >= vectors, label
                assert plan.held * 16 <= plan.shared, label
                assert plan.shared + 1152 <= device.shared_per_block, label
                assert 2 * (plan.shared + 1152 + 1024) > device.shared_per_sm, label
                assert plan.blocks == rows, label
            case "grid":
                assert device.cooperative, label
                assert plan.slice * plan.team >= vectors, label
                assert plan.held <= plan.slice, label
                # All of a cooperative launch's blocks run at once, three on an SM.
                assert plan.blocks <= 3 * device.sms, label
                assert 3 * (plan.shared + 1152 + 1024) <= device.shared_per_sm, label
                assert plan.team == 1 or plan.slice * (plan.team - 1) < vectors + 8 * plan.team, label
            case "ahead":
                assert device.cooperative, label
                assert plan.slice * plan.team >= vectors, label
                # In registers 14 and 4 vectors of each thread; in shared memory as many as the 14, and the rest.
                assert plan.held >= 14 * plan.threads + max(0, plan.slice - 18 * plan.threads), label
                assert plan.held * 16 <= plan.shared, label
                assert plan.shared + 1152 <= device.shared_per_block, label
                assert 2 * (plan.shared + 1152 + 1024) > device.shared_per_sm, label
                assert plan.blocks == plan.team * plan.teams <= device.sms, label
                assert plan.teams < rows, label
            case "sweeps":
                assert plan.slice * plan.held >= vectors, label
                assert plan.blocks == plan.slice * plan.teams, label
                assert 1 <= plan.teams <= rows, label


def test_rows_beyond_two_to_the_31_are_addressed(choose: Choose) -> None:
    plan = choose((3 * 2**31, 3), "fp16")
    assert plan.rows == 3 * 2**31
    assert plan.blocks * plan.rows_each >= plan.rows
