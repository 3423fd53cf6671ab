"""Takes an older report away before a run begins: one that is interrupted must leave nothing that looks like its own.

Promise: only what is a file goes; a device or a pipe stays. Of a link what it leads to goes, and is written again.
"""

import os
from pathlib import Path


def remove(*paths: Path | None) -> None:
    """Remove these files where they are there.

    Raises:
        OSError: One can neither be removed nor emptied.
    """
    for path in paths:
        if path is not None and path.is_file():
            try:
                path.resolve().unlink(missing_ok=True)
            except OSError:  # its folder may not be written to
                os.truncate(path, 0)
