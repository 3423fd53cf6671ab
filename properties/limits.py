"""How long a candidate may take."""

from __future__ import annotations

from dataclasses import dataclass

#: Importing a large library, or tracing a model for the first time, takes a few times as long as a call may.
FIRST = 3


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds.

    Attributes:
        start: a worker's own start (the import of torch).
        build: loading a candidate, and a process's first call of a kind, while compilers that it started are at work.
        call: a call. Loading, and a first call of a kind, may take `FIRST` times as long without a compiler's help.
    """

    start: float = 120.0
    build: float = 300.0
    call: float = 20.0

    @property
    def first(self) -> float:
        """Seconds for loading, and for a first call of a kind, where no compiler is at work."""
        return min(FIRST * self.call, self.build)
