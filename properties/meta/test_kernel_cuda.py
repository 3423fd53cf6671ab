"""The CUDA kernel beside its limits: the choices made for other cards, forced on this one; errors; streams; graphs."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import pytest
import torch

from kernels.cuda.op import REGIMES, Limits, l1_norm_cuda, l1_norm_limited, regime

from .. import inputs
from ..cases import Case
from ..l1_norm import L1_NORM
from ..layouts import Layout
from ..targets import machine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu),
    pytest.mark.timeout(300),
]

#: Cards whose choices this one can run, too: nobody asks for more shared memory or larger clusters than it has.
CARDS = {
    "no clusters": Limits(108, 167936, 166912, 1, True, 1935),
    "no cooperative launch": Limits(108, 167936, 166912, 1, False, 0),
    "little shared memory": Limits(58, 102400, 101376, 1, True, 300),
    "small clusters": Limits(128, 102400, 101376, 8, True, 1792),
    "this one": Limits(132, 233472, 232448, 16, True, 3352),
    "fast memory": Limits(132, 233472, 232448, 16, True, 4916),
    "fast memory, few multiprocessors": Limits(
        8, 233472, 232448, 16, True, 300
    ),  # for each of which there are many rows
}
#: Kernels that a card has no use for, at least in these shapes.
UNUSED: dict[str, set[str]] = {
    "no clusters": {"cluster", "sweeps", "alone", "ahead"},
    "no cooperative launch": {"cluster", "grid", "alone", "ahead"},
    "little shared memory": {"cluster", "alone", "ahead"},
    "small clusters": {"sweeps", "alone", "ahead"},
    "this one": {"sweeps", "alone", "ahead"},
    "fast memory": {"sweeps", "alone"},
    "fast memory, few multiprocessors": set(),
}
SHAPES = (
    *(
        (7, 1),
        (300, 3),
        (40001, 3),  # tiles: more rows than lanes find room at once
        (70, 24),
        (40001, 70),
        (5, 255),
        (12001, 255),
        (9, 1023),
        (6001, 1023),
        (40, 4097),
        (200, 4097),
        (140, 9001),
    ),
    *((3, 65535), (2, 262147), (3, 849999)),
    *((60, 131073), (150, 65535), (130, 20001)),  # many long rows, for blocks that stay and blocks that have an SM
    *((23, 400001), (7, 1700001)),  # and rows of a part of the chip
    *((1, 1048577), (1, 9000001)),
    # Tiles of columns: of one that are shorter than a line, of many that share sectors, of blocks that share columns.
    *(
        (2, 9001, 33),
        (1, 40001, 65),
        (2, 1000, 33),
        (3, 133, 20),
        (3, 200, 1155),
        (40, 300, 1028),
        (5, 129, 4, 9),
        (2, 4500, 50),
        (3, 70, 6),
    ),
    *((3, 33, 35), (4, 5, 8, 9), (5, 3, 64), (3, 16, 44), (2, 61, 9), (3, 101, 7), (9, 40, 3)),  # few columns
    # Slabs: a tile of them, one a tile, more than a tile, rows that all or none of a block's threads share.
    *(
        (150, 3, 5),
        (1001, 24, 2),
        (3000, 64, 9),
        (140, 1000, 7),
        (133, 129, 15),
        (1501, 5, 60),
        (200, 33, 36),
        (135, 2, 1001),
    ),
)
LAYOUTS = (Layout(), Layout(offset=1), Layout(pitch=3), Layout(order=(1, 0)), Layout(step=2))


def right(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether it is within the contract, and within its grade."""
    said = L1_NORM.assess(x.contiguous(), y.contiguous())
    return said.fault is None and not said.inaccurate


def cases() -> list[Case]:
    """Shapes with every dtype, matrices with every layout; and rows of one value, whose sums drift the most."""
    plain = [Case(shape, dtype) for shape in SHAPES for dtype in ("float32", "float16", "bfloat16", "float64")]
    plain += [Case(shape, layout=layout) for shape in SHAPES if len(shape) == 2 for layout in LAYOUTS[1:]]
    signed = [replace(case, values="signed" if case.columns <= 1 << 20 else "integers", seed=1) for case in plain]
    return signed + [
        Case(shape, dtype, values="constant", seed=9) for shape in SHAPES for dtype in ("float32", "float64")
    ]


@pytest.mark.parametrize("card", CARDS)
def test_the_choices_for_other_cards_are_right_here(card: str) -> None:
    chosen = set()
    for case in cases():
        given = inputs.build(case, "cuda")
        x = given.storage.as_strided(given.shape, given.geometry.strides, given.geometry.offset)
        out = torch.full_like(x, float("nan"))
        l1_norm_limited(x, out, CARDS[card])
        assert right(given.logical, out), f"{case} on {card}: {regime(x, out, CARDS[card])}"
        chosen.add(regime(x, out, CARDS[card]))
    assert chosen == {*REGIMES} - {"empty"} - UNUSED[card]


def test_a_launch_that_fails_is_an_error_in_words_and_the_next_call_is_right() -> None:
    x = torch.rand(8, 1048577, device="cuda")
    out = torch.empty_like(x)
    with pytest.raises(RuntimeError, match=r"CUDA error .* while launching the kernel"):
        l1_norm_limited(x, out, Limits(132, 900000, 900000, 16, True, 0))
    l1_norm_cuda(x, out)
    assert right(x, out)


SHARED_ROWS = ((64, 1023), (6, 65535), (3, 1048577), (7, 4194305), (1, 9000001))


def test_two_streams_and_two_threads_at_once_give_what_they_give_alone() -> None:
    given = [torch.rand(shape, device="cuda") - 0.5 for shape in SHARED_ROWS for _ in range(2)]
    alone = [torch.empty_like(x) for x in given]
    for x, y in zip(given, alone, strict=True):
        l1_norm_cuda(x, y)
    torch.cuda.synchronize()
    wrong: list[str] = []

    def run(part: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _, (x, expected) in itertools.product(range(20), list(zip(given, alone, strict=True))[part::2]):
                y = torch.full_like(x, float("nan"))
                l1_norm_cuda(x, y)
                if not torch.equal(y, expected):
                    wrong.append(str(tuple(x.shape)))

    threads = [threading.Thread(target=run, args=(part,)) for part in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("shape", SHARED_ROWS, ids=str)
def test_a_captured_call_is_replayed_on_new_data(shape: tuple[int, int]) -> None:
    x = torch.rand(shape, device="cuda")
    out = torch.empty_like(x)
    l1_norm_cuda(x, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        l1_norm_cuda(x, out)
    for _ in range(3):
        x.uniform_(-1, 1)
        out.fill_(float("nan"))
        graph.replay()
        assert right(x, out)
