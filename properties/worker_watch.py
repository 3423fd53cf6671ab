"""What a worker looks at around a call: is the process that of its caller still?

Memory is watched from outside (`slots`). What lies outside no memory of the judging process is looked at here: its
modes (`worker_modes`), the functions of its library (`worker_library`), random numbers, the environment, signals. All
of it is bound when this module is imported, which is before any candidate is. What a candidate changes while it is
imported or made counts as part of it; the first look is behind that.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import operator
import os
import random
import signal
from collections.abc import Iterator

import numpy as np
import torch

from . import worker_arithmetic
from .worker_facts import told
from .worker_library import LibraryWatch
from .worker_modes import ARITHMETIC, modes, named, signal_name

_random_state = torch.get_rng_state
_random_state_of_python = random.getstate
_random_state_of_numpy = np.random.get_state
_equal = torch.equal
#: Without the words for numbers, of which there would be dozens at every call.
_handler = _signal.getsignal
_SIGNALS = sorted(signal.valid_signals())


class ProcessWatch:
    """The modes of the process, and the functions of its library, when the candidate was ready to be called."""

    def __init__(self) -> None:
        self._modes = dict(modes())
        self._arithmetic = worker_arithmetic.here()
        self._random = told(_random_state)
        self._others = _other_random_states()
        self._environment, self._encoded = dict(os.environ), _encoded()
        self._library = LibraryWatch()
        self._handlers = list(map(_handler, _SIGNALS))

    def changes(self, shared_out: bool = False) -> tuple[str, ...]:
        """What is otherwise now, in words.

        Args:
            shared_out: whether torch's threads have been at work, so that they can be asked, too.
        """
        now = dict(modes())
        found = [
            f"{name}: {self._modes.get(name, 'unknown')} -> {now[name]}"
            for name in now
            if now[name] != self._modes.get(name)
        ]
        found += self._in_torchs_threads() if shared_out else ()
        if not told(_equal, self._random, told(_random_state)):
            found.append("the state of the random numbers")
        others = _other_random_states()
        found += [f"the state of {name}'s random numbers" for name in others if others[name] != self._others[name]]
        # What is set for the first time is a library's that was just loaded; what is changed was the caller's.
        if _encoded() != self._encoded:
            lost = [name for name, value in self._environment.items() if os.environ.get(name) != value]
            found += [f"the environment variable {name}" for name in lost]
        return (*found, *self.replaced(), *self._at_signals())

    def replaced(self) -> tuple[str, ...]:
        """What of the libraries that others use, too, does something else now."""
        return self._library.changes()

    def _at_signals(self) -> Iterator[str]:
        """The signals at which something else is done now."""
        present = list(map(_handler, _SIGNALS))
        if not all(map(operator.is_, self._handlers, present)):
            for each, *handlers in zip(_SIGNALS, self._handlers, present, strict=True):
                then, now = (told(named, handler) for handler in handlers)
                if now != then:
                    yield f"what {signal_name(each)} does: {then} -> {now}"

    def _in_torchs_threads(self) -> Iterator[str]:
        """What is otherwise in the threads that torch shares its work among: neither as usual nor as in the caller's.

        What the caller's was when the candidate was ready is no other: a mode that is set at import is inherited, or
        not, by whether these threads had been started before.
        """
        with contextlib.suppress(Exception):  # a mode that was left around torch's operators may raise anything
            found = worker_arithmetic.in_torchs_threads()
            for name, now, then, usual in zip(
                ARITHMETIC, found, self._arithmetic, worker_arithmetic.USUAL, strict=True
            ):
                if now not in (then, usual):
                    yield f"{name} in the threads that torch shares its work among: {usual} -> {now}"


def _encoded() -> dict[bytes, bytes]:
    """The environment variables as Python has them, which is compared at once; nothing of one in their place."""
    return dict(getattr(os.environ, "_data", {}))


def _other_random_states() -> dict[str, object]:
    """The states of the random numbers that are not torch's; equal where nobody drew or seeded."""
    return {"Python": told(_random_state_of_python), "numpy": told(_numpys_random_state)}


def _numpys_random_state() -> tuple[object, ...]:
    name, key, *others = _random_state_of_numpy()
    return name, key.tobytes(), *others  # type: ignore[attr-defined]
