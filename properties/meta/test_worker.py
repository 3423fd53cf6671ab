"""The worker's own steps, without a card: in which order they are done."""

from __future__ import annotations

import pytest
import torch

from .. import worker, worker_gpu, worker_output
from ..protocol import Place, View


class StrawTensor:
    """As much of a tensor on a GPU as a call looks at before the model has it."""

    device = torch.device("cuda:0")

    def element_size(self) -> int:
        """Bytes."""
        return 4


class StrawWatch:
    """A tensor that stays as it is."""

    written = False

    def changes(self) -> tuple[str, ...]:
        """None."""
        return ()


class StrawShared:
    """Shared memory that notes when it was filled."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def fill(self) -> None:
        """Note it."""
        self.order.append("fill shared memory")


def test_what_a_call_on_a_gpu_needs_is_opened_before_memory_is_poisoned_and_that_before_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To open a slot may wait for all that is queued; it allocates, too, and poison there may be written over."""
    order: list[str] = []
    session = worker.Session([])

    def opened(place: Place) -> torch.Tensor:
        if f"open {place.slot}" not in order:
            order.append(f"open {place.slot}")
        return torch.zeros(1)

    def tensor(view: View) -> tuple[StrawTensor, tuple[int, int]]:
        opened(view.place)
        return StrawTensor(), (0, 0)

    def model(_: object) -> torch.Tensor:
        order.append("call")
        return torch.zeros(1)

    session._models._first = model
    monkeypatch.setattr(session, "_bytes", opened)
    monkeypatch.setattr(session, "_tensor", tensor)
    monkeypatch.setattr(worker, "InputWatch", lambda _: StrawWatch())
    monkeypatch.setattr(session, "_shared_memory", lambda _: StrawShared(order))
    monkeypatch.setattr(worker, "_copy", lambda *_: order.append("copy"))
    monkeypatch.setattr(worker, "_synchronize", lambda _: order.append("synchronize"))
    for name, word in (("make_current", "make current"), ("poison", "poison"), ("keep_waiting", "wait")):
        monkeypatch.setattr(worker_gpu, name, lambda *_, word=word: order.append(word))
    monkeypatch.setattr(worker_gpu, "current", lambda: 0)
    monkeypatch.setattr(worker_gpu, "pending_error", lambda _: "")
    place = {"slot": 0, "capacity": 1, "start": 0, "nbytes": 4, "device": "cuda:0", "handle": ""}
    view = {"place": place, "dtype": "float32", "shape": [1], "strides": [1], "offset": 0}
    asked = {"side": False, "autocast": False, "inflow": None, "output": None, "keep": ""}
    asked |= {"beside": None, "way": "plain", "busy": False, "stand_in": "", "sealed": False}
    asked |= {"setting": "", "instance": ""}
    reply = session.handle({"op": "call", "view": view, "late": {**place, "slot": 2}, **asked})
    assert reply["outcome"] == "returned"
    ready = ["open 0", "open 2", "make current", "fill shared memory", "poison"]
    assert order == [*ready, "wait", "copy", "call", "synchronize"]


def test_the_first_gpu_has_a_context_before_another_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be current in name alone, and a kernel that ignores where its input lies would look right."""
    reached: list[str] = []

    def empty(_: int, device: str) -> torch.Tensor:
        reached.append(device)
        return torch.empty(1)

    monkeypatch.setattr(worker_gpu, "_empty", empty)
    assert worker_gpu.reach("cuda:1") == 1
    assert worker_gpu.reach("cuda:0") == 1
    assert reached == ["cuda:0", "cuda:1", "cuda:0"]


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


def test_an_error_that_quotes_one_of_its_kind_names_it_once() -> None:
    told = worker_output.describe_error(RuntimeError("RuntimeError: no such operator"), "k.py")
    assert (told.type, told.text) == ("RuntimeError", "no such operator")
