"""Progress on a terminal: what is being done, how many are done, how long is left. Elsewhere it is silent."""

from __future__ import annotations

import io
import os
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

#: Twice a second is seen as moving, and costs a measurement nothing.
_REFRESHES = 2
#: Characters beside what is being done: the bar, the count, two times.
_BESIDE = 52


class Bar:
    """One line at the foot of the terminal; it is gone when closed."""

    def __init__(self, stream: TextIO | None, total: int) -> None:
        """Nothing is shown yet.

        Args:
            stream: where to show it; nothing is, where that is no terminal.
            total: how many there are to do.
        """
        self._progress: Progress | None = None
        if stream is not None and stream.isatty():
            self._console = Console(file=_past_capturing(stream))
            self._progress = Progress(
                BarColumn(20),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
                refresh_per_second=_REFRESHES,
            )
            self._task = self._progress.add_task("", total=total)

    def show(self, doing: str, done: int) -> None:
        """Say what is being done, and how many are done."""
        if self._progress is not None:
            self._progress.start()
            room = max(self._console.width - _BESIDE, 10)
            short = doing if len(doing) <= room else f"{doing[: room - 1]}\N{HORIZONTAL ELLIPSIS}"
            self._progress.update(self._task, description=short, completed=done)

    def say(self, line: str) -> bool:
        """Say something that stays, above the line; returns whether there is one to say it above."""
        if self._progress is None:
            return False
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        return True

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()


def _past_capturing(stream: TextIO) -> TextIO:
    """The terminal itself: pytest turns the stream's descriptor elsewhere while a test runs.

    To be called while it does not.
    """
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", encoding=stream.encoding, errors="replace")
    except io.UnsupportedOperation:
        return stream
