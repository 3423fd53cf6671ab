"""The input of a benchmark and the result that is looked at, in slots that every contestant's worker sees.

The input's values are those of one tile, repeated along dimension 0: no kernel's speed depends on them, and an input of
many GiB is made in the time of a small one. The judging process keeps the tile, so it needs no second copy of the input
to tell whether a result is right and whether the input is as it was.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch

from . import layouts, timing
from .cases import Case
from .device_memory import IpcError
from .inputs import bits
from .memory import OutOfMemoryError, available_bytes
from .operators import Operator
from .protocol import View
from .slots import INPUT, OUTPUT, Slots
from .values import fill

#: Elements of the tile: on a CPU half a second's work, on a GPU a moment's.
_TILE = {"cpu": 1 << 22, "cuda": 1 << 26}
#: Elements of a result that are judged: one or two seconds on two cores.
_JUDGED = 1 << 25
#: Alignment of an input's first byte, in bytes: that of torch's pool on a GPU, so that nobody is slow for its sake.
_ALIGNMENT = 512
#: What the bytes of the output slot are before a worker copies a result there: a NaN in every format.
_UNWRITTEN = torch.full((8,), 0xFF, dtype=torch.uint8)
_ZEROS = torch.zeros(8, dtype=torch.uint8)
#: Memory in units of the input: both slots, the candidate's result, and eager's result and temporary. On a CPU that is
#: all at once; the pools of the other contestants on a GPU hold a result each.
_UNITS = {"cpu": 5, "cuda": 7}
#: How the message starts where it is the machine that lacks something.
NOT_RUN = "not run: "
#: Bytes besides: on a GPU a context in each worker.
_BESIDES = {"cpu": 0, "cuda": 3 << 30}


class NotMeasuredError(Exception):
    """There is no figure; the message says why."""


class TimedInput:
    """One case's input and output place.

    Attributes:
        nbytes: of the input, and of a result.
        view: the input, as workers are told of it.
        output: where a worker is to copy a result.
    """

    def __init__(self, case: Case, memory: Slots) -> None:
        """Make the input in slots that a worker has been seen to reach.

        Raises:
            NotMeasuredError: the memory does not suffice; it says how much is needed.
        """
        self._case, self._memory = case, memory
        self._dtype: torch.dtype = getattr(torch, case.dtype)
        self._slab = case.numel // case.shape[0]
        self.nbytes = case.numel * self._dtype.itemsize
        kind, home = torch.device(memory.device).type, torch.device(memory.home).type
        needed, free = _UNITS[kind] * self.nbytes + _BESIDES[kind], _free(home, memory)
        if free is not None and needed > free:
            raise NotMeasuredError(f"{NOT_RUN}needs {needed / 2**30:.1f} GiB, have {free / 2**30:.1f} GiB")
        height = min(max(1, _TILE[home] // self._slab), case.shape[0])
        try:
            self._tile = fill((height, *case.shape[1:]), case.dtype, case.values, case.seed, device=memory.home)
            self.view = self._place()
            start = memory[OUTPUT].reserve_filled(_padded(self.nbytes), _UNWRITTEN)
        except (OutOfMemoryError, torch.OutOfMemoryError, IpcError) as error:
            raise NotMeasuredError(f"{NOT_RUN}{str(error).splitlines()[0]}") from None
        if home == "cuda":
            torch.cuda.empty_cache()  # what filling took: the workers want it
        self.output = memory.place(OUTPUT, start, self.nbytes)
        self._result = memory.found(self.output).view(self._dtype).view(case.shape)

    def renew(self) -> None:
        """Put other values in the input's place: each moves on by one, so every element of a result must change.

        A call that leaves out what an earlier one has written to the same memory is right as long as its input is the
        same. The values' sizes are what they were, and so is a kernel's speed.
        """
        self._tile = self._tile.flatten().roll(1).view(self._tile.shape)
        self._fill()

    def exchange(self, chooser: random.Random) -> None:
        """Let a few neighbours change places, one pair of 2^17 elements: an input that looks like the one before.

        A call that knows its input again by a sample, or by its sums, takes it for that.
        """
        flat = self._tile.view(-1)
        pairs = flat.numel() // 2
        if pairs:
            some = {chooser.randrange(pairs) for _ in range(max(1, pairs >> 16))}
            left = 2 * torch.tensor(sorted(some), device=flat.device)
            flat[left], flat[left + 1] = flat[left + 1], flat[left]
        self._fill()

    def clear(self) -> None:
        """Forget the result in the output place, so that the next one is not taken for it."""
        self._memory.found(self.output).fill_(0xFF)
        if self._result.is_cuda:
            torch.cuda.synchronize()

    def misfit(self, meta: Mapping[str, object]) -> str:
        """What is wrong with the kind of a result, as its worker describes it; "" where nothing is."""
        got, expected = (meta.get("dtype"), meta.get("shape")), (self._case.dtype, list(self._case.shape))
        if not meta.get("is_tensor") or got != expected:
            return f"returned {meta.get('type')}, {got[0]} {got[1]}; expected a tensor {expected}"
        return ""

    def judge(self, operator: Operator, chooser: random.Random) -> tuple[str, int]:
        """Look at the result in the output place: all of it, or random slices along dimension 0.

        Returns:
            What is wrong with it, or with the input after it ("" where nothing is), and the number of elements judged.
        """
        judged = 0
        for part in timing.blocks(self._case.shape[0], max(1, _JUDGED // self._slab), chooser):
            where = f"[{part.start}:{part.stop}]"
            given = self._tile[torch.arange(part.start, part.stop, device=self._tile.device) % len(self._tile)]
            if not torch.equal(bits(self._input[part].contiguous()), bits(given)):
                return f"the timed calls changed their input in x{where}", judged
            fault = operator.assess(given, self._result[part].clone()).fault
            if fault is not None:
                return f"{fault.kind} in y{where}" + (f": {fault.text}" if fault.text else ""), judged
            judged += given.numel()
        return "", judged

    def _place(self) -> View:
        case = self._case
        geometry = layouts.geometry(case.layout, case.shape)
        nbytes = geometry.length * self._dtype.itemsize
        start = self._memory[INPUT].reserve_filled(_padded(nbytes), _ZEROS)
        place = self._memory.place(INPUT, start, nbytes)
        storage = self._memory.found(place).view(self._dtype)
        first = storage.storage_offset() + geometry.offset  # as_strided counts from the start of the slot
        self._input = storage.as_strided(case.shape, geometry.strides, first)
        self._fill()
        return View(place, case.dtype, case.shape, geometry.strides, geometry.offset)

    def _fill(self) -> None:
        for part in self._input.split(len(self._tile)):
            part.copy_(self._tile[: len(part)])
        if self._input.is_cuda:
            torch.cuda.synchronize()


def _free(home: str, memory: Slots) -> int | None:
    """Bytes that can be had, on a GPU those of the slots among them; None where that is not known."""
    if home == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(memory.device)[0] + memory.capacity
    return available_bytes()


def _padded(nbytes: int) -> int:
    """Bytes to reserve: data lie flush with a slot's end, so that their start is aligned as the length is."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
