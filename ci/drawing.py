"""Finds, or makes, a Python that has matplotlib: the drawings of a page need it and nothing else does.

Promise: the caller's own environment is never changed. A small venv in the cache folder, without torch, is made once;
where it cannot be, the reason comes back and a page without drawings is written.
"""

import hashlib
import importlib.util
import platform
import shutil
import sys
import tomllib
import venv
from pathlib import Path

from ci import lock
from ci.environment import Say, pip_for
from ci.exits import Stop
from ci.plan import distribution

LIBRARY = "matplotlib"
# Written last into a complete venv.
MARKER = "kernelproof-drawing"
# Seconds to wait for another set-up: it downloads some 30 MB.
LOCK_WAIT = 300


def here() -> bool:
    """Whether the running interpreter has the library."""
    return importlib.util.find_spec(LIBRARY) is not None


def requirement(checkout: Path) -> str:
    """What pyproject.toml asks for under the extra `report`."""
    with (checkout / "pyproject.toml").open("rb") as file:
        extra: list[str] = tomllib.load(file)["project"]["optional-dependencies"]["report"]
    return next(each for each in extra if distribution(each) == LIBRARY)


def find_python(checkout: Path, cache: Path, *, offline: bool, say: Say) -> tuple[Path | None, str]:
    """A Python of our own that has the library.

    Returns:
        Its program and "", or None and why there is none and what to do.
    """
    wanted = requirement(checkout)
    digest = hashlib.sha256(f"{sys.base_prefix} {wanted}".encode()).hexdigest()[:12]
    folder = cache / "environments" / f"drawing-python{platform.python_version()}-{digest}"
    python = folder / "bin" / "python"
    how = f"install it: {sys.executable} -m pip install '{wanted}'"
    if is_complete(folder):
        return python, ""
    if offline:
        return None, f"{LIBRARY} is not installed, and --offline downloads nothing; {how}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock.held(folder.parent / f"{folder.name}.lock", LOCK_WAIT, say) as descriptor:
            if not is_complete(folder):
                say(f"setting up {LIBRARY} for the plots in {folder} (once)")
                make(folder, wanted, descriptor)
    except Stop as stop:
        return None, f"{LIBRARY} is not installed and could not be: {stop.line}; {how}"
    except OSError as error:
        return None, f"{LIBRARY} is not installed and could not be: {error.filename}: {error.strerror}; {how}"
    return python, ""


def is_complete(folder: Path) -> bool:
    """Whether a venv was made to its end and its interpreter is still there."""
    return (folder / MARKER).is_file() and (folder / "bin" / "python").exists()


def make(folder: Path, wanted: str, descriptor: int) -> None:
    """Make the venv anew.

    Raises:
        Stop: The library cannot be had.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        pip_for(folder, sys.executable, offline=False, descriptors=(descriptor,)).install([wanted], None)
        (folder / MARKER).write_text(f"{wanted}\n", encoding="utf-8")
    except BaseException:
        # What is half made only takes up room; without its marker nobody would use it.
        shutil.rmtree(folder, ignore_errors=True)
        raise
