"""What a worker does on a GPU around a call: fresh memory made recognisable, errors and losses seen.

What it needs of torch is bound when this module is imported, which is before any candidate is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch

#: What memory holds that was handed out and never written: glibc fills it so (`process.PERTURB`), `poison` on a GPU.
FRESH_BYTE = 0x7F
#: Blocks of the output's size that are filled before a call: the output itself, and a temporary or two; for an output
#: of a GiB or more only one, which is memory enough.
_POISONED = 3
_LARGE = 1 << 30
#: GPU cycles that a late producer waits before it writes the input, 10 ms at 2 GHz: a call that does not wait for it
#: has long read the input then.
_LATE = 20_000_000

_empty = torch.empty
_fill = torch.Tensor.fill_
_item: Callable[[torch.Tensor], object] = torch.Tensor.item
_synchronize = torch.cuda.synchronize
_sleep: Callable[[int], None] = torch.cuda._sleep
_device_guard = torch.cuda.device
_OutOfMemory = torch.OutOfMemoryError
_set_current: Callable[[int], None] = torch.cuda.set_device
current: Callable[[], int] = torch.cuda.current_device


def reach(device: str) -> int:
    """Make a GPU's context and return the number 1, which lay in its memory.

    The first GPU gets one before: it is to be current in every call, and one without a context is so in name alone.
    What is launched "there" then runs on whichever GPU has one, and a kernel that ignores where its input lies looks
    right.
    """
    for each in dict.fromkeys(("cuda:0", device)):
        found = _item(_fill(_empty(1, device=each), 1))
    assert isinstance(found, float)
    return int(found)


def make_current() -> None:
    """Make the first GPU the current one, as it is before every call, for the driver, too."""
    _set_current(0)


def poison(nbytes: int, device: torch.device) -> None:
    """Fill the blocks that torch's pool will hand out for an output of this size (on the CPU glibc does it).

    Where memory does not suffice there is nothing to fill, and a candidate is not to blame for it.
    """
    blocks: list[torch.Tensor] = []
    with contextlib.suppress(_OutOfMemory):
        blocks.extend(
            _fill(_empty(nbytes, dtype=torch.uint8, device=device), FRESH_BYTE)
            for _ in range(_POISONED if nbytes < _LARGE else 1)
        )
    del blocks


def keep_waiting(device: str) -> None:
    """Enqueue a wait on a GPU's current stream; the host goes on."""
    with _device_guard(device):
        _sleep(_LATE)


def pending_error(device: torch.device) -> str:
    """The error that an operation of anybody's would now raise for a launch that failed before it, in words, or ""."""
    try:
        _fill(_empty(1, device=device), 0)
    except _OutOfMemory:
        return ""
    except RuntimeError as error:
        if lost(device):
            raise
        return str(error).splitlines()[0]
    return ""


def lost(device: torch.device) -> bool:
    """Whether the context is beyond use: after an illegal access every call fails."""
    try:
        _synchronize(device)
        _item(_fill(_empty(1, device=device), 0))
    except _OutOfMemory:
        return False
    except RuntimeError:
        return True
    return False
