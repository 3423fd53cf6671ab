"""Is a compiler at work? The CPU time of the programs that a worker has started, from the process table.

A candidate that builds an extension in its first call must not be taken for one that hangs, and one that hangs must not
get a compiler's time. What tells them apart is who works: a build's time is spent by programs that the worker started.
"""

from __future__ import annotations

from pathlib import Path

_PROCESSES = Path("/proc")
#: Places in /proc/PID/stat behind the command's closing bracket: state, session, user and system time, and these two of
#: the children that were waited for (proc(5), fields 3, 6 and 14 to 17).
_STATE, _SESSION, _TIMES = 0, 3, slice(11, 15)


def helpers_work(worker: int, processes: Path = _PROCESSES, *, session: int | None = None) -> int:
    """CPU time, in clock ticks, of all other processes in the worker's session, and of children it has waited for.

    0 where the system has no process table of this form (macOS): nothing is known of helpers there.

    Args:
        worker: its process number.
        processes: the table.
        session: the number of its session, where it does not lead that itself.
    """
    total = 0
    for stat in processes.glob("[0-9]*/stat"):
        fields = _fields(stat)
        if len(fields) > _TIMES.stop and int(fields[_SESSION]) == (worker if session is None else session):
            own, children = fields[_TIMES][:2], fields[_TIMES][2:]
            total += sum(map(int, children if stat.parent.name == str(worker) else (*own, *children)))
    return total


def stopped(process: int, processes: Path = _PROCESSES) -> bool:
    """Whether a process was stopped by a signal; False where the system does not tell."""
    return _fields(processes / str(process) / "stat")[_STATE : _STATE + 1] == ["T"]


def _fields(stat: Path) -> list[str]:
    """What stands in a process's entry behind its command; nothing of one that has ended."""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
