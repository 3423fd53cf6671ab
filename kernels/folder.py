"""Where builds and environments lie. Standard library only: the commands of `ci` ask before anything is installed."""

from collections.abc import Mapping
from pathlib import Path

VARIABLE = "KERNELPROOF_CACHE"


def cache_folder(environment: Mapping[str, str], home: Path, system: str) -> Path:
    """The folder for all that may be deleted and made again: $KERNELPROOF_CACHE, else one in the user's cache folder.

    Args:
        environment: The environment variables.
        home: The user's home folder.
        system: A value of `sys.platform`.
    """
    named = environment.get(VARIABLE)
    if named:
        return Path.cwd() / Path(named).expanduser()
    if system == "darwin":
        return home / "Library" / "Caches" / "kernelproof"
    xdg = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path there is to be ignored.
    return (Path(xdg) if Path(xdg).is_absolute() else home / ".cache") / "kernelproof"
