"""A lock between processes that dies with its holder and is never waited for without an end.

Promise: `flock` on a file, so that a killed holder frees it; the descriptor can be handed to child processes,
and then the lock holds until the last of them is gone too. A wait that takes long names the lock and its holder.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ci.exits import UNAVAILABLE, Stop

# Seconds between two tries: short beside a set-up of a minute, long beside a system call.
POLL = 0.2


@contextmanager
def held(path: Path, wait: float, say: Callable[[str], None], what: str = "the set-up") -> Iterator[int]:
    """Hold the lock at `path`; yields its descriptor, to be passed on to children (`pass_fds`).

    Args:
        path: The lock file; its folder exists. It stays behind, empty of meaning, when the lock is free.
        wait: Seconds to wait for another holder.
        say: Told once, in a line, that and for whom we wait.
        what: What a holder is doing, in words.

    Raises:
        Stop: The lock was not free in time, or the file system knows no locks.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, wait, say, what)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, wait: float, say: Callable[[str], None], what: str) -> None:
    end = time.monotonic() + wait
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            raise Stop(
                UNAVAILABLE, f"{path}: this file system has no locks; set KERNELPROOF_CACHE to a folder on a local disk"
            ) from error
        else:
            return
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
        if time.monotonic() > end:
            raise Stop(
                UNAVAILABLE,
                f"{what} of process {holder} has not ended for {wait:.0f} s ({path}); end that process, then try again",
            )
        if not told:
            say(f"waiting for {what} of process {holder} ({path})")
            told = True
        time.sleep(POLL)
