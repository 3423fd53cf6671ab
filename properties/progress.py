"""Progress on a terminal: what is being done, how many are done, how long is left. Elsewhere it is silent."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

#: Twice a second is seen as moving, and costs a measurement nothing.
_REFRESHES = 2


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
            self._progress = Progress(
                BarColumn(20),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(file=stream),
                transient=True,
                refresh_per_second=_REFRESHES,
            )
            self._task = self._progress.add_task("", total=total)

    def show(self, doing: str, done: int) -> None:
        """Say what is being done, and how many are done."""
        if self._progress is not None:
            self._progress.start()
            self._progress.update(self._task, description=doing, completed=done)

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()
