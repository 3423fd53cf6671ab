"""Takes the folders of the machine that made a page out of it: a page is sent around, and shows nobody's home.

Promise: pure. A path inside one of the given folders becomes relative to the innermost of them (inside the home folder
it begins with ``~/``), in every text of the page. Drawings are left as they are: they hold names of cases alone.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ci.page_content import Figure

Part = TypeVar("Part")


def portable(page: Part, folders: Sequence[Path], home: Path) -> Part:
    """The page, or a part of one, with paths that mean something elsewhere.

    Args:
        page: With whatever paths.
        folders: Absolute; a path inside is named from there.
        home: Absolute; named ``~``.
    """
    names = {str(home): "~/", **{str(each): "" for each in folders}}
    names = {name: short for name, short in names.items() if len(Path(name).parts) > 1}
    # The longest first: the innermost folder names a path.
    ordered = sorted(names, key=len, reverse=True)
    if not ordered:
        return page
    # A folder's name begins where a path does, not in the middle of one: at a compiler's -I or -L, too, and in a URL of
    # a file. It goes on with what lies inside, or ends there.
    before = r"(?P<option>(?<![\w./~-])-[A-Za-z]|(?<!\w)file://)?"
    folder = "|".join(map(re.escape, ordered))
    pattern = re.compile(rf"{before}(?(option)|(?<![\w./~-]))(?P<folder>{folder})(?:(?P<inside>/)|(?!\.?[\w~@%+-]))")

    def short(found: re.Match[str]) -> str:
        option = (found["option"] or "").removeprefix("file://")
        name = names[found["folder"]]
        return option + (name if found["inside"] else name.rstrip("/") or ".")

    changed: Part = _changed(page, lambda text: pattern.sub(short, text))
    return changed


def _changed(part: Any, change: Callable[[str], str]) -> Any:
    """A copy of a part with every text in it changed."""
    if isinstance(part, str):
        return change(part)
    if isinstance(part, tuple | list):
        return type(part)(_changed(each, change) for each in part)
    if isinstance(part, Figure):
        return replace(part, title=change(part.title), words=change(part.words))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{each.name: _changed(getattr(part, each.name), change) for each in fields(part)})
    return part
