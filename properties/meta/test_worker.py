"""The worker's own steps, without a card: in which order they are done."""

from __future__ import annotations

import pytest
import torch

from .. import worker, worker_gpu
from ..protocol import Place


def test_a_late_input_lies_ready_before_the_wait_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    session = worker.Session([])

    def opened(place: Place) -> torch.Tensor:
        order.append(f"open {place.slot}")
        return torch.zeros(1)

    monkeypatch.setattr(session, "_bytes", opened)
    monkeypatch.setattr(worker_gpu, "keep_waiting", lambda _: order.append("wait"))
    monkeypatch.setattr(worker, "_copy", lambda *_: order.append("copy"))
    session._produce_late(Place(0, 1, 0, 1), Place(2, 1, 0, 1))
    assert order == ["open 0", "open 2", "wait", "copy"]


def test_a_collected_result_that_cannot_be_read_is_the_candidates_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("gone")

    session = worker.Session([])
    session._kept["early"] = torch.zeros(3)
    monkeypatch.setattr(session, "_copy_out", fails)
    place = {"slot": 0, "capacity": 1, "start": 0, "nbytes": 12, "device": "cpu", "handle": ""}
    view = {"place": place, "dtype": "float32", "shape": [3], "strides": [1], "offset": 0}
    reply = session.handle({"op": "collect", "kept": "early", "view": view, "output": place})
    assert reply["outcome"] == "raised"
    assert reply["device_lost"] is False
