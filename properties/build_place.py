"""Whether there is room for what a candidate builds: a full disk, or a folder that nobody may write to.

A build that ends for this reason says nothing about the candidate, which is then not judged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernels.folder import VARIABLE

from .memory import OutOfMemoryError

#: What the file system answers for, whoever put something into the folder.
_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
#: How a program says so whose build has failed.
_SAID = re.compile(r"no space left on device|disk quota exceeded|the disk is full", re.IGNORECASE)
#: Bytes that are written to see whether there is room; and of which a build may need more: a disk with less left is
#: believed to have been full, since a tool that fails removes what it has written.
_TRIED, _LITTLE = 1 << 16, 1 << 30


class NoPlaceError(OutOfMemoryError):
    """Nothing can be built: the message says in which folder, why, and what to set."""


def of_the_disk(error: OSError, folder: Path) -> bool:
    """Whether an error under a folder is the disk's, or that of who has made the folder, rather than its content's."""
    if error.errno in _OF_THE_DISK:
        return True
    with contextlib.suppress(OSError):
        return error.errno in (errno.EACCES, errno.EPERM) and folder.stat().st_uid != os.getuid()
    return False


def said(text: str) -> bool:
    """Whether a failed build says that it had no room."""
    return bool(_SAID.search(text))


def wrong_with(folders: Sequence[Path], *, believed: bool) -> str:
    """What keeps anybody from building, in a line; "" where nothing does.

    Args:
        folders: where the candidate's builds lie. That of temporary files, which compilers fill, is looked at, too.
        believed: whether somebody said so: a disk with little left then counts as full.
    """
    temporary = Path(tempfile.gettempdir())
    for folder in (*folders, temporary):
        variable = "TMPDIR" if folder == temporary else VARIABLE
        try:
            with tempfile.TemporaryFile(dir=folder) as tried:
                tried.write(b"\1" * _TRIED)
        except OSError as error:
            return words(error, folder, variable)
        if believed and (free := _free(folder)) is not None and free < _LITTLE:
            return _full(folder, variable)
    return ""


def words(error: OSError, folder: Path, variable: str = VARIABLE) -> str:
    """An error of writing to a folder as a person is told it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(folder, variable)
    why = "is read-only" if error.errno == errno.EROFS else f"cannot be used ({error.strerror or error})"
    return f"nothing can be built: {folder} {why}; set {variable} to a folder that can be written to"


def _full(folder: Path, variable: str) -> str:
    free = _free(folder)
    left = "" if free is None else f" ({free / 2**20:.1f} MiB free)"
    return (
        f"nothing can be built: the disk of {folder} is full{left}; free some space, or set {variable} to another disk"
    )


def _free(folder: Path) -> int | None:
    """Bytes that we may still write there; None where the system does not say."""
    with contextlib.suppress(OSError):
        there = next(each for each in (folder, *folder.parents) if each.exists())
        found = os.statvfs(there)
        return found.f_bavail * found.f_frsize
    return None
