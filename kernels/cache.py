"""The folder of finished builds: found by key, complete or absent, one builder at a time.

Promise: `finished` never returns a library that a killed process or a full disk left half-written. A build happens in a
folder of its own, gets a seal (size and digest of the library) and is then renamed into place. Whoever builds holds a
lock of the operating system, which dies with its process: a lock file that was left behind, or made with `touch`, stops
nobody, and the wait for a live one is bounded and names it.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from .errors import BuildError
from .folder import VARIABLE

TIMEOUT_VARIABLE = "KERNELPROOF_LOCK_TIMEOUT"

# Seconds to wait for another process that builds the same thing. A build takes 6 to 20 s, on a busy machine a minute.
DEFAULT_LOCK_TIMEOUT = 300.0

_SEAL = "complete.json"


def lock_timeout() -> float:
    """Seconds to wait for another builder, $KERNELPROOF_LOCK_TIMEOUT or 300.

    Raises:
        BuildError: The variable is no number of seconds.
    """
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        seconds = float(text) if text else DEFAULT_LOCK_TIMEOUT
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise BuildError(f"{TIMEOUT_VARIABLE}={text!r} is no number of seconds", "set it to 0 or more, or unset it")
    return seconds


def disk_error(error: OSError, place: Path) -> BuildError:
    """What an OSError under the cache folder amounts to: a full disk, or a folder that cannot be used."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BuildError(
            f"the disk is full (writing to {place})", f"free some space, or set {VARIABLE} to another disk"
        )
    return BuildError(
        f"the cache folder {place} cannot be used ({error.strerror or error})",
        f"set the environment variable {VARIABLE} to a folder that you may write to",
    )


@dataclass(frozen=True)
class Entry:
    """The place of one build in the cache.

    Attributes:
        root: The folder of all builds.
        name: Of this build; ends in its key.
        library: File name of the library within it.
    """

    root: Path
    name: str
    library: str

    @property
    def folder(self) -> Path:
        """Where the finished build lies."""
        return self.root / self.name

    def finished(self) -> Path | None:
        """The library, if the build is there and whole."""
        library = self.folder / self.library
        try:
            seal = json.loads((self.folder / _SEAL).read_text(encoding="utf-8"))
            whole = seal == _seal_of(library)
        except (OSError, ValueError):
            return None
        return library if whole else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold this build's lock, after a bounded wait.

        Raises:
            BuildError: The cache folder cannot be written to, or somebody else held the lock all the time.
        """
        timeout = lock_timeout()
        path = self.root / f"{self.name}.lock"
        owner = path.with_suffix(".owner")
        lock = filelock.FileLock(path, timeout=timeout)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout:
            raise BuildError(
                f"waited {timeout:g} s for the build lock {path}, held by {_read_owner(owner)}",
                f"let that process finish or end it, or allow more seconds in {TIMEOUT_VARIABLE}",
            ) from None
        except NotImplementedError as error:
            raise BuildError(
                f"the file system of {self.root} has no locks", f"set {VARIABLE} to a local disk", str(error)
            ) from None
        except OSError as error:
            raise disk_error(error, self.root) from None
        try:
            with contextlib.suppress(OSError):  # only a service to the error message above
                owner.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
            yield
        finally:
            owner.unlink(missing_ok=True)
            lock.release()

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """A fresh folder to build in, removed afterwards unless `publish` has moved it. Hold the lock."""
        # We hold the lock: what earlier builders left behind belongs to nobody any more.
        for stale in self.root.glob(f"{self.name}.partial-*"):
            shutil.rmtree(stale, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}.partial-", dir=self.root))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, workplace: Path, built: Path) -> Path:
        """Seal the library built in `workplace` and move the folder into its place, in one step. Hold the lock."""
        library = workplace / self.library
        if built != library:
            built.rename(library)
        (workplace / _SEAL).write_text(json.dumps(_seal_of(library)), encoding="utf-8")
        if self.folder.exists():  # there, but not whole
            shutil.rmtree(self.folder)
        workplace.rename(self.folder)
        return self.folder / self.library


def _seal_of(library: Path) -> dict[str, int | str]:
    content = library.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _read_owner(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or "a process that is not known"
    except OSError:
        return "a process that is not known"
