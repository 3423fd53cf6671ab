"""Inputs and their memory: the view shows the values, canaries lie everywhere else, and one step further is death."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from .. import inputs, memory
from ..cases import Case, parse
from ..memory import GuardedMap, Slot
from ..strategies import cases
from .test_cases import EVERYTHING

QUICK = settings(max_examples=60, deadline=None, database=None)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(inputs.bits(left.contiguous()), inputs.bits(right.contiguous()))


@given(cases(EVERYTHING, elements=1 << 10, layouts=True, negated=True))
@QUICK
def test_the_view_shows_the_values_and_canaries_lie_everywhere_else(case: Case) -> None:
    made = inputs.build(case)
    view = made.view_of(made.storage)
    assert same(-view if made.negated else view, made.logical)
    assert made.logical.stride() == torch.empty(made.shape).stride(), "that of a dimension of one element, too"
    hidden = torch.ones(made.geometry.length, dtype=torch.bool)
    hidden.as_strided(made.shape, made.geometry.strides, made.geometry.offset).fill_(False)
    rest = inputs.bits(made.storage)[hidden]
    assert (rest == inputs.CANARY_BITS[case.dtype]).all()
    assert made.storage[hidden].isnan().all()


@pytest.mark.parametrize("dtype", inputs.CANARY_BITS)
def test_a_canary_is_no_other_nan(dtype: str) -> None:
    canary = inputs.canaries(dtype, 1)
    plain = torch.full((1,), float("nan"), dtype=canary.dtype)
    margin = torch.full((canary.element_size(),), memory.MARGIN_BYTE, dtype=torch.uint8).view(canary.dtype)
    assert canary.isnan()
    assert not same(canary, plain)
    assert not same(canary, margin)


def test_an_expanded_dimension_shows_one_value() -> None:
    made = inputs.build(parse("shape=4x7,layout=expand1,values=signed,seed=3"))
    assert (made.logical == made.logical[:, :1]).all()
    assert made.storage.numel() == 4


def test_windows_show_what_their_neighbours_show() -> None:
    made = inputs.build(parse("shape=4x7,layout=lap2,values=signed,seed=3"))
    assert torch.equal(made.logical[1:, :5], made.logical[:-1, 2:])
    assert made.storage.numel() == 13
    assert len(made.logical.unique()) == 13


@pytest.mark.parametrize("shape", ["1x1", "1x5", "5x1", "1x5x1"])
def test_values_lie_as_those_of_a_fresh_tensor_whatever_they_are_cut_from(shape: str) -> None:
    made = inputs.build(parse(f"shape={shape},layout=lap2,values=signed,seed=3"))
    assert made.logical.stride() == torch.empty(made.shape).stride()


def test_data_lie_flush_with_the_end_up_to_the_alignment() -> None:
    slot = Slot()
    for elements in (1, 15, 16, 17, 1000):
        storage = torch.arange(elements, dtype=torch.float32)
        start = slot.place(storage)
        assert start % memory.ALIGNMENT == 0
        assert 0 <= slot.capacity - (start + 4 * elements) < memory.ALIGNMENT
        window = slot.window(start)
        data = window[memory.MARGIN : memory.MARGIN + 4 * elements].view(torch.float32)
        assert torch.equal(data, storage)
        assert (window[: memory.MARGIN] == memory.MARGIN_BYTE).all()
        assert (window[memory.MARGIN + 4 * elements :] == memory.MARGIN_BYTE).all()
    slot.close()


def test_a_slot_grows_and_a_new_mapping_sees_it() -> None:
    slot = Slot()
    small = slot.capacity
    slot.place(torch.zeros(8))
    first = slot.capacity
    start = slot.place(torch.full((1 << 20,), 3.0))
    assert small < first < slot.capacity
    mapped = GuardedMap(slot.fd, slot.capacity)
    assert (mapped.tensor(start, 4 << 20).view(torch.float32) == 3.0).all()
    mapped.close()
    slot.close()


def test_more_than_there_is_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    slot = Slot()
    with pytest.raises(memory.OutOfMemoryError, match=r"needs 0\.1 GiB of shared memory, have 0\.0 GiB"):
        slot.place(torch.zeros(30_000_000))
    slot.close()
