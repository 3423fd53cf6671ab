"""The slots of a runner: where inputs, results and what a call needs beside them lie, and how a worker sees them.

On a CPU a slot is a file that both processes map (`memory`). On a GPU it is device memory that the worker opens
(`device_memory`); where the driver does not share device memory between processes, it is the file again, which the
worker pins and shows to the GPU. Which of the two it is, is found out with the first worker.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from . import protocol
from .device_memory import DeviceSlot, IpcError
from .inputs import Input
from .memory import MARGIN, MARGIN_BYTE, Slot
from .observation import Damage
from .protocol import Message, Place

#: What the judging process puts where a worker is to copy a result: no value that a copy could leave behind.
POISON = torch.tensor([0xA5, 0x5A, 0xA5, 0x7F, 0xA5, 0x5A, 0xA5, 0x7F], dtype=torch.uint8)
INPUT, OUTPUT, ASIDE = range(3)
#: Bytes compared at a time.
_COMPARED = 1 << 28


class Slots:
    """Three slots for one device.

    Attributes:
        device: where a worker sees them, as torch names it.
        unshared: why device memory cannot be shared, so that the host's is used; "" where it can, or on a CPU.
    """

    def __init__(self, device: str, pinned: bool = False) -> None:
        """Nothing is reserved yet.

        Args:
            device: as torch names it.
            pinned: whether to use the host's memory for a GPU from the start.
        """
        self.device = device
        self.unshared = "as asked for" if pinned and device != "cpu" else ""
        self._known = device == "cpu" or pinned
        self._all: list[Slot | DeviceSlot] = [
            Slot() if self._known else DeviceSlot(device) for _ in (INPUT, OUTPUT, ASIDE)
        ]

    def __getitem__(self, number: int) -> Slot | DeviceSlot:
        """One of them: INPUT, OUTPUT or ASIDE."""
        return self._all[number]

    @property
    def home(self) -> str:
        """Where the judging process makes inputs and finds results, as torch names it."""
        return "cpu" if isinstance(self._all[INPUT], Slot) else self.device

    @property
    def fds(self) -> list[int]:
        """Descriptors that a worker must be given."""
        return [slot.fd for slot in self._all if slot.fd >= 0]

    @property
    def capacity(self) -> int:
        """Bytes of all of them together."""
        return sum(slot.capacity for slot in self._all)

    def place(self, number: int, start: int, nbytes: int) -> Place:
        """Some bytes of a slot, as a worker is told of them."""
        slot = self._all[number]
        return Place(number, slot.capacity, start, nbytes, self.device, slot.handle)

    def put(self, number: int, storage: torch.Tensor, slack: int = 0) -> Place:
        """Copy a 1-D storage flush with the end of a slot; see `memory.Slot.place`."""
        nbytes = storage.numel() * storage.element_size()
        return self.place(number, self._all[number].place(storage, slack), nbytes)

    def damage(self, given: Input, place: Place) -> Damage | None:
        """What changed in an input's memory since it was put there; None where nothing did."""
        window = self._all[place.slot].window(place.start)
        before = given.storage.view(torch.uint8)
        data = window[MARGIN : MARGIN + given.nbytes]
        edges = (window[:MARGIN], window[MARGIN + given.nbytes :])
        outside = sum(int((edge != MARGIN_BYTE).sum()) for edge in edges)
        pieces = zip(data.split(_COMPARED), before.split(_COMPARED), strict=True)
        if not outside and all(torch.equal(now, then) for now, then in pieces):
            return None
        changed = (data != before).view(-1, given.storage.element_size()).any(1)
        shown = given.view_of(changed)
        flat = shown.reshape(-1).nonzero()
        inside, first = int(shown.sum()), int(flat[0]) if len(flat) else None
        shown.fill_(False)  # what is left has changed in the gaps
        outside += int(changed.sum()) * given.storage.element_size()
        return Damage(inside, first, outside)

    def room(self, given: Input) -> Place:
        """Where the result of an input is to be copied, filled with `POISON`."""
        nbytes = given.logical.numel() * given.logical.element_size()
        padded = -(-nbytes // POISON.numel()) * POISON.numel()
        return self.place(OUTPUT, self._all[OUTPUT].reserve_filled(padded, POISON), nbytes)

    def found(self, place: Place) -> torch.Tensor:
        """The bytes of a place as the judging process sees them."""
        return self._all[place.slot].data(place.start, place.nbytes)

    def share(self, ask: Callable[[Message], Message]) -> bool:
        """See whether a worker reaches device memory; where it does not, take the host's instead.

        Args:
            ask: sends a request to a worker and returns its reply.

        Returns:
            Whether the worker can go on: one that was started before the slots changed cannot.
        """
        if self._known:
            return True
        try:
            start = self._all[INPUT].place(POISON.to(self.device))
            place = self.place(INPUT, start, POISON.numel())
            reply = ask({"op": "reach", "device": self.device, "place": protocol.to_message(place)})
            self.unshared = "" if reply.get("byte") == int(POISON[0]) else str(reply.get("text"))
        except IpcError as error:
            self.unshared = str(error)
        self._known = True
        if self.unshared:
            self.close()
            self._all = [Slot() for _ in self._all]
        return not self.unshared

    def close(self) -> None:
        """Give all memory back."""
        for slot in self._all:
            slot.close()
