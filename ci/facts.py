"""What the set-up has to know of the calling interpreter and of the machine.

Promise: reads only; standard library only; torch is found without being imported, so that this takes
milliseconds. The decisions taken on these facts are in `ci.environment`, apart, as pure functions.
"""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Seconds. nvidia-smi answers in about one; a driver in trouble can let it hang for ever.
NVIDIA_SMI_TIMEOUT = 20
# The oldest torch that the project is made for, as (major, minor).
OLDEST_TORCH = (2, 9)


@dataclass(frozen=True)
class Caller:
    """The interpreter that runs the command.

    Attributes:
        executable: Its path, as called.
        prefix: Its `sys.prefix`: the venv's folder where it is a venv, else the installation's.
        base: The real path of its program: that of the installation where it is a venv.
        version: Like "3.12.3".
        torch: The version of the torch it can import, like "2.11.0+cu130"; None without one.
        site_folders: The folders it imports installed packages from, in its order: site-packages,
            dist-packages, the user's folder, folders that a .pth file added.
        scripts: The folder with the programs of its packages (ninja, ruff).
    """

    executable: str
    prefix: str
    base: str
    version: str
    torch: str | None
    site_folders: tuple[str, ...]
    scripts: str


def describe_caller(checkout: Path) -> Caller:
    """Describe the running interpreter; `checkout` is left out of the site folders."""
    return Caller(
        executable=sys.executable,
        prefix=sys.prefix,
        base=os.path.realpath(sys.executable),
        version=platform.python_version(),
        torch=torch_version(),
        site_folders=site_folders(sys.path, standard_folders(), [str(checkout), *pythonpath(os.environ)]),
        scripts=sysconfig.get_path("scripts"),
    )


def torch_version() -> str | None:
    """The version of the torch that the running interpreter would import, or None; does not import it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return _version_in_source(Path(spec.origin).with_name("version.py"))


def _version_in_source(version_file: Path) -> str | None:
    """The version that a torch without metadata (a source tree on PYTHONPATH) states in its version.py."""
    if not version_file.is_file():
        return None
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", version_file.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else None


def torch_is_recent(version: str) -> bool:
    """Whether this torch version is one the project is made for; a development build counts by its release number.

    PEP 440 orders 2.9.0a0+git before 2.9, yet it is what vendors' containers carry as their 2.9.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= OLDEST_TORCH


def standard_folders() -> list[str]:
    """The folders of the standard library of the running interpreter."""
    paths = sysconfig.get_paths()
    return [paths["stdlib"], paths["platstdlib"]]


def pythonpath(environment: Mapping[str, str]) -> list[str]:
    """The folders named by PYTHONPATH; every child process inherits them, so they need no copying."""
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]


def site_folders(search_path: list[str], standard: list[str], elsewhere: list[str]) -> tuple[str, ...]:
    """The entries of a `sys.path` that hold installed packages, in order.

    Args:
        search_path: The `sys.path` to sort.
        standard: Folders of the standard library: left out with `lib-dynload` and the zip file below them,
            but not the `site-packages` that lies below them too.
        elsewhere: Folders that reach a child process in another way.
    """
    skipped = {os.path.realpath(folder) for folder in [*standard, *elsewhere]}
    skipped |= {f"{folder}/lib-dynload" for folder in skipped}
    kept: list[str] = []
    for entry in search_path:
        if entry and Path(entry).is_dir() and os.path.realpath(entry) not in skipped and entry not in kept:
            kept.append(entry)
    return tuple(kept)


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU that torch could use."""
    if Path("/dev/nvidia0").exists():
        return True
    nvidia_smi = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if nvidia_smi is None:
        return False
    try:
        listed = subprocess.run([nvidia_smi, "-L"], capture_output=True, text=True, timeout=NVIDIA_SMI_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout
