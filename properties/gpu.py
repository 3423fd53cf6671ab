"""Whether the GPU is there, as the judging process sees it: what every runner of a run shares.

A kernel that hangs, or takes the driver down with it, may leave a card that answers nobody. From then on nothing of it
is a verdict on anybody: it is said once, and what would run there is not run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .device_memory import IpcError
from .memory import OutOfMemoryError

#: Seconds in which a fresh process must reach the card after a call that hung: the driver first ends the old kernel.
ANSWER_SECONDS = 60.0


class GpuGoneError(Exception):
    """The GPU does not answer any more; the message says since when."""


@dataclass
class Gpu:
    """The card of a run.

    Attributes:
        gone: since when it does not answer, in words; "" while it does.
    """

    gone: str = ""

    def lost(self, since: str) -> None:
        """Remember that it does not answer; the first time counts."""
        self.gone = self.gone or f"the GPU does not answer any more since {since}"

    def insist(self) -> None:
        """Raise `GpuGoneError` where it is gone."""
        if self.gone:
            raise GpuGoneError(self.gone)

    @contextlib.contextmanager
    def watched(self, during: str) -> Iterator[None]:
        """Calls of the judging process itself on the card: where the driver fails them, the card is gone.

        Raises:
            GpuGoneError: it is.
            OutOfMemoryError: only its memory is used up.
        """
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise OutOfMemoryError(str(error).splitlines()[0]) from None
        except RuntimeError as error:
            if not isinstance(error, IpcError) and "CUDA error" not in str(error):
                raise
            if "out of memory" in str(error):
                raise OutOfMemoryError(str(error).splitlines()[0]) from None
            self.lost(f"{during} ({str(error).splitlines()[0]})")
            self.insist()
