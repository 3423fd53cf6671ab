"""The worker's own steps, without a card: in which order they are done."""

from __future__ import annotations

import contextlib

import pytest
import torch

from .. import worker
from ..protocol import Place


def test_a_late_input_lies_ready_before_the_wait_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    session = worker.Session([])

    def opened(place: Place) -> torch.Tensor:
        order.append(f"open {place.slot}")
        return torch.zeros(1)

    monkeypatch.setattr(session, "_bytes", opened)
    monkeypatch.setattr(worker, "_device_guard", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(worker, "_sleep", lambda _: order.append("wait"))
    monkeypatch.setattr(worker, "_copy", lambda *_: order.append("copy"))
    session._produce_late(Place(0, 1, 0, 1), Place(2, 1, 0, 1))
    assert order == ["open 0", "open 2", "wait", "copy"]
