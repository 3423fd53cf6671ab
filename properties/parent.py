"""What becomes of a process when the one that started it ends, where the system can tell it (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal

#: prctl's number for "send me this signal when my parent ends" (linux/prctl.h).
_PR_SET_PDEATHSIG = 1


def at_its_end(number: signal.Signals) -> None:
    """Have this process sent a signal when its parent ends, or the parent's thread that has started it.

    A process that was stopped is sent it, too. What this process starts does not inherit it.
    """
    before = os.getppid()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != before:  # it ended while it was asked for
            os.kill(os.getpid(), number)
