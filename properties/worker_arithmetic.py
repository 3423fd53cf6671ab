"""How the processor does arithmetic: in the thread that calls, and in those that torch shares its work among.

Rounding and the treatment of subnormal numbers belong to a thread. One that torch starts has the modes of who made it
do so, for good: a program that sets a mode for a call alone, and torch's threads start meanwhile, gives them the mode
and never takes it back. Nobody sees that but in the results of large operations. It is bound when it is imported,
which is before any candidate is.
"""

from __future__ import annotations

import sys

import torch

#: Operands of which the modes show; no constants that are folded.
_ONE, _BELOW_ITS_ROUNDOFF, _SMALLEST_NORMAL = float("1"), float("1e-30"), sys.float_info.min
_ROUNDINGS = {(False, False): "to nearest", (True, False): "up", (False, True): "down"}
#: Pairs of numbers that are added: what is added to one, to minus one, and to a subnormal number.
_PAIRS = (_ONE, _BELOW_ITS_ROUNDOFF, -_ONE, -_BELOW_ITS_ROUNDOFF, _SMALLEST_NORMAL / 2, 0.0)
#: How every thread of a process does arithmetic that nobody has set otherwise.
USUAL = ("to nearest", "kept")
#: Elements from which on torch shares an operation out among threads, which it starts when it first does
#: (at::internal::GRAIN_SIZE and one more).
SHARED_OUT = 32769

_tensor, _float64, _cpu = torch.tensor, torch.float64, torch.device("cpu")
_repeat, _tolist = torch.Tensor.repeat, torch.Tensor.tolist
_get_threads = torch.get_num_threads
_inference_mode = torch.inference_mode
#: An operation that gives each thread its share however small that is; most are shared out from 32768 elements on.
_add_up_pairs = torch._C._nn.avg_pool2d


def here() -> tuple[str, str]:
    """Rounding and subnormal numbers, in words, in the thread that asks."""
    up, down = _ONE + _BELOW_ITS_ROUNDOFF != _ONE, -_ONE - _BELOW_ITS_ROUNDOFF != -_ONE
    return _words(up, down, _SMALLEST_NORMAL / 2 != 0)


def are_at_work(elements: int, device: torch.device) -> bool:
    """Whether torch shares work on so many elements there out among its threads.

    On a GPU it does not. To ask them all the same would start them, and they wait for more with all their might: on a
    machine that judges on many processes at once that costs each of them more than all else.
    """
    return device == _cpu and elements >= SHARED_OUT


def in_torchs_threads() -> tuple[str, str]:
    """The same in the threads that torch has started: of the first that is unlike the one that asks, if any is.

    Where torch has started none this starts them, which is why nobody asks before something was large enough to be
    shared out (`SHARED_OUT`): they would have the present modes, not what a candidate would have given them.
    """
    ours, count = here(), _get_threads()
    if count == 1:
        return ours
    with _inference_mode():
        given = _repeat(_tensor(_PAIRS, dtype=_float64, device=_cpu), (1, 1, count, 1))
        # Kernel, stride and padding; the size of the result, whether padding counts; what the sum is divided by.
        sums = _tolist(_add_up_pairs(given, (1, 2), (1, 2), (0, 0), False, True, 1))[0][0]
    found = (_words(up != 1, down != -1, small != 0) for up, down, small in sums)
    return next((each for each in found if each != ours), ours)


def _words(up: bool, down: bool, kept: bool) -> tuple[str, str]:
    return _ROUNDINGS.get((up, down), "to zero"), "kept" if kept else "flushed to zero"
