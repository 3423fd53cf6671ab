"""Which CUDA kernel a call gets, by its layout; and that what is tried on a card gets every kernel it has."""

from __future__ import annotations

import pytest
import torch

from kernels.cuda.op import REGIMES

from .. import layouts
from .choices import Choose
from .test_kernel_cuda import CARDS, UNUSED, cases


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


def test_the_same_call_gets_the_same_plan_whatever_its_dimensions_are_called(choose: Choose) -> None:
    flat = choose((6 * 35, 4096))
    channels_last = choose((6, 4096, 5, 7), strides=(35 * 4096, 1, 7 * 4096, 4096))
    assert channels_last == flat
    assert choose((1, 4096, 1, 210), strides=(0, 1, 0, 4096)) == flat


@pytest.mark.parametrize("card", CARDS)
def test_the_shapes_that_are_tried_on_a_card_get_every_kernel_that_it_has(choose: Choose, card: str) -> None:
    chosen = set()
    for case in cases():
        at = layouts.geometry(case.layout, case.shape)
        out = torch.empty_like(torch.empty_strided(case.shape, at.strides, device="meta")).stride()
        kind = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}[case.dtype]
        chosen.add(choose(case.shape, kind, CARDS[card], at.strides, tuple(out), at.offset).regime)
    assert chosen == {*REGIMES} - {"empty"} - UNUSED[card]
