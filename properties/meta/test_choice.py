"""Which CUDA kernel a call gets, on which card, asked without a GPU.

The choice is a pure function of layout and limits: the host compiler builds it, and it is asked here where neighbouring
sizes fall, and whether every plan fits its device and covers its tensor.
"""

import ctypes
import itertools
import math
import subprocess
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import pytest
import torch

from kernels.cuda.op import REGIMES, SOURCES, Limits
from kernels.toolchain import find_compiler

from .. import layouts
from .test_kernel_cuda import CARDS, UNUSED, cases

H100 = Limits(sms=132, shared_per_sm=233472, shared_per_block=232448, max_cluster=16, cooperative=True, memory=3352)
H200 = replace(H100, memory=4916)
A100 = Limits(sms=108, shared_per_sm=167936, shared_per_block=166912, max_cluster=1, cooperative=True, memory=1935)
L4 = Limits(sms=58, shared_per_sm=102400, shared_per_block=101376, max_cluster=1, cooperative=True, memory=300)
B200 = Limits(sms=148, shared_per_sm=233472, shared_per_block=232448, max_cluster=16, cooperative=True, memory=7672)
SM120 = Limits(sms=170, shared_per_sm=102400, shared_per_block=101376, max_cluster=8, cooperative=True, memory=1792)
ALONE = Limits(sms=132, shared_per_sm=233472, shared_per_block=232448, max_cluster=1, cooperative=False, memory=0)
DEVICES = {
    "H100": H100,
    "H200": H200,
    "A100": A100,
    "L4": L4,
    "B200": B200,
    "sm_120": SM120,
    "without cooperative launches": ALONE,
}

KINDS = {"fp16": (0, 2), "bf16": (1, 2), "fp32": (2, 4), "fp64": (3, 8)}

# An address as the allocator gives it: a multiple of 512 bytes.
BASE = 1 << 40

SHIM = """
#include "choice.h"
extern "C" void choose(int kind, int dims, long long const* sizes, long long const* in_strides,
                       long long const* out_strides, long long in, long long out, int const* limits, long long* plan) {
  std::int64_t shape[64], from[64], to[64];
  for (int d = 0; d < dims; ++d) shape[d] = sizes[d], from[d] = in_strides[d], to[d] = out_strides[d];
  l1norm::Call const call{static_cast<l1norm::Kind>(kind), dims, shape, from, to, reinterpret_cast<void const*>(in),
                          reinterpret_cast<void*>(out)};
  l1norm::Layout const at = l1norm::lay_out(call);
  l1norm::Plan const p = l1norm::choose(at, {limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]});
  long long const numbers[] = {static_cast<int>(p.regime), static_cast<int>(p.memory), p.threads, p.team, p.lanes,
                               p.each, p.rows_each, p.unit, p.unit_bytes, p.grain, p.across, p.width, p.held,
                               p.slice, p.teams, p.blocks, p.shared, p.workspace, at.rows, at.outer.dims};
  for (int i = 0; i < 20; ++i) plan[i] = numbers[i];
}
"""


@dataclass(frozen=True)
class Plan:
    """A choice, as the launcher gets it; `rows` and `dims` are what the layout was reduced to."""

    regime: str
    fast: int
    threads: int
    team: int
    lanes: int
    each: int
    rows_each: int
    unit: int
    unit_bytes: int
    grain: int
    across: int
    width: int
    held: int
    slice: int
    teams: int
    blocks: int
    shared: int
    workspace: int
    rows: int
    dims: int


Choose = Callable[..., Plan]


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


@pytest.fixture(scope="module")
def choose(tmp_path_factory: pytest.TempPathFactory) -> Choose:
    folder = tmp_path_factory.mktemp("choice")
    (folder / "shim.cpp").write_text(SHIM)
    flags = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{SOURCES.folder}")
    command = [str(find_compiler().path), *flags, str(folder / "shim.cpp"), "-o", str(folder / "choice.so")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    function = ctypes.CDLL(str(folder / "choice.so")).choose
    function.restype = None

    def ask(
        shape: tuple[int, ...],
        kind: str = "fp32",
        device: Limits = H100,
        strides: tuple[int, ...] | None = None,
        out: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> Plan:
        def numbers(values: tuple[int, ...]) -> ctypes.Array[ctypes.c_longlong]:
            return (ctypes.c_longlong * len(values))(*values)

        code, size = KINDS[kind]
        at = strides or contiguous(shape)
        limits = (ctypes.c_int * 6)(*(int(limit) for limit in astuple(device)))
        plan = (ctypes.c_longlong * 20)()
        addresses = (ctypes.c_longlong(BASE + offset * size), ctypes.c_longlong(2 * BASE))
        function(code, len(shape), numbers(shape), numbers(at), numbers(out or at), *addresses, limits, plan)
        return Plan(REGIMES[plan[0]], *plan[1:])

    return ask


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


@pytest.mark.parametrize(
    ("shape", "strides", "out", "regime"),
    [
        ((0, 8), (8, 1), (8, 1), "empty"),
        ((8, 0), (1, 1), (1, 1), "empty"),
        ((300, 64), (65, 1), (64, 1), "group"),
        ((1 << 20, 128), (128, 1), (128, 1), "tile"),
        ((1 << 20, 129), (129, 1), (129, 1), "tile"),
        ((1 << 20, 255), (255, 1), (255, 1), "tile"),
        ((1 << 20, 255), (256, 1), (255, 1), "group"),
        # 132 times 2048 lanes: eight a row of any length, two a row of two vectors.
        ((33793, 3), (3, 1), (3, 1), "tile"),
        ((33792, 3), (3, 1), (3, 1), "group"),
        ((135169, 8), (8, 1), (8, 1), "tile"),
        ((135168, 8), (8, 1), (8, 1), "group"),
        # Twice 132 times 228 KB.
        ((15063, 1023), (1023, 1), (1023, 1), "tile"),
        ((15062, 1023), (1023, 1), (1023, 1), "group"),
        ((1 << 20, 1025), (1025, 1), (1025, 1), "block"),
        ((64, 100), (0, 1), (100, 1), "group"),
        ((4096, 4096), (1, 4096), (1, 4096), "columns"),
        ((4096, 4096), (1, 4097), (1, 4096), "columns"),
        ((64, 1000, 33, 35), (1155000, 1155, 35, 1), (1155000, 1155, 35, 1), "columns"),
        ((64, 1000, 2), (2000, 2, 1), (2000, 2, 1), "strided"),
        ((64, 100), (200, 2), (100, 1), "strided"),
        ((64, 100), (1, 0), (100, 1), "strided"),
        ((3, 9, 2, 2, 2, 2, 2), (900, 1, 400, 170, 80, 35, 15), (288, 1, 144, 72, 36, 18, 9), "strided"),
    ],
)
def test_layouts_fall_where_the_table_says(
    choose: Choose, shape: tuple[int, ...], strides: tuple[int, ...], out: tuple[int, ...], regime: str
) -> None:
    assert choose(shape, strides=strides, out=out).regime == regime


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


def test_the_same_call_gets_the_same_plan_whatever_its_dimensions_are_called(choose: Choose) -> None:
    flat = choose((6 * 35, 4096))
    channels_last = choose((6, 4096, 5, 7), strides=(35 * 4096, 1, 7 * 4096, 4096))
    assert channels_last == flat
    assert choose((1, 4096, 1, 210), strides=(0, 1, 0, 4096)) == flat


def test_rows_beyond_two_to_the_31_are_addressed(choose: Choose) -> None:
    plan = choose((3 * 2**31, 3), "fp16")
    assert plan.rows == 3 * 2**31
    assert plan.blocks * plan.rows_each >= plan.rows


@pytest.mark.parametrize("card", CARDS)
def test_the_shapes_that_are_tried_on_a_card_get_every_kernel_that_it_has(choose: Choose, card: str) -> None:
    chosen = set()
    for case in cases():
        at = layouts.geometry(case.layout, case.shape)
        out = torch.empty_like(torch.empty_strided(case.shape, at.strides, device="meta")).stride()
        kind = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}[case.dtype]
        chosen.add(choose(case.shape, kind, CARDS[card], at.strides, tuple(out), at.offset).regime)
    assert chosen == {*REGIMES} - {"empty"} - UNUSED[card]
