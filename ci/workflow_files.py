"""Reads the YAML that our workflows are written in: mappings, lists, block texts, flow lists on one line.

Promise: standard library only, and only for our own files in tests. What it does not know is an error with its line,
never a guess; every scalar stays text, `on` among them, which YAML 1.1 takes for a truth value.
"""

import re
from pathlib import Path
from typing import Any

# YAML: the tests know what they look for.
Node = dict[str, Any]
_KEY = re.compile(r"^([\w.-]+|\"[^\"]+\"):(?: +(.*))?$")
_BLOCK = ("|", "|-", ">", ">-")


class _Lines:
    """The lines of a file that mean something, each with its number and indentation."""

    def __init__(self, text: str) -> None:
        self.all = text.splitlines()
        self.at = 0

    def peek(self) -> tuple[int, str] | None:
        """Indentation and content of the next line; None at the end."""
        while self.at < len(self.all):
            line = self.all[self.at]
            content = _without_comment(line.strip())
            if content and content != "---":
                return len(line) - len(line.lstrip()), content
            self.at += 1
        return None

    def block(self, indentation: int) -> str:
        """The lines of a block text, which stand deeper than this."""
        found = []
        while self.at < len(self.all):
            line = self.all[self.at]
            if line.strip() and len(line) - len(line.lstrip()) <= indentation:
                break
            found.append(line)
            self.at += 1
        depth = min((len(line) - len(line.lstrip()) for line in found if line.strip()), default=0)
        return "\n".join(line[depth:] for line in found).rstrip("\n") + "\n"


def read(path: Path) -> Node:
    """The mapping in a file.

    Raises:
        ValueError: A line is not of the part of YAML that is known here.
    """
    lines = _Lines(path.read_text(encoding="utf-8"))
    found = _value(lines, 0)
    left = lines.peek()
    if left is not None or not isinstance(found, dict):
        raise ValueError(f"{path}, line {lines.at + 1}: {left[1] if left else 'a list'!r} is not expected here")
    return found


def _value(lines: _Lines, indentation: int) -> Any:
    """The mapping or list that stands at this indentation."""
    following = lines.peek()
    if following is None or following[0] < indentation:
        return ""
    if following[1].startswith("- "):
        return _list(lines, following[0])
    return _mapping(lines, following[0])


def _list(lines: _Lines, indentation: int) -> list[Any]:
    found: list[Any] = []
    while (following := lines.peek()) is not None and following[0] == indentation and following[1].startswith("- "):
        inside = following[1][2:]
        if _KEY.match(inside):
            # The first key of a mapping stands behind the dash: it is read again, two columns further in.
            lines.all[lines.at] = " " * (indentation + 2) + lines.all[lines.at].strip()[2:]
            found.append(_mapping(lines, indentation + 2))
        else:
            lines.at += 1
            found.append(_scalar(inside))
    return found


def _mapping(lines: _Lines, indentation: int) -> Node:
    found: Node = {}
    while (following := lines.peek()) is not None and following[0] == indentation:
        match = _KEY.match(following[1])
        if match is None:
            raise ValueError(f"line {lines.at + 1}: {following[1]!r} is neither a key nor an item of a list")
        key, text = match[1].strip('"'), match[2] or ""
        if key in found:
            raise ValueError(f"line {lines.at + 1}: {key!r} stands there twice")
        lines.at += 1
        if text in _BLOCK:
            found[key] = lines.block(indentation)
        else:
            found[key] = _scalar(text) if text else _value(lines, indentation + 1)
    return found


def _scalar(text: str) -> Any:
    if text == "{}":
        return {}
    if text.startswith("[") and text.endswith("]"):
        return [item.strip().strip("\"'") for item in text[1:-1].split(",")]
    if text.startswith(("{", "[", "&", "*", "'")):
        raise ValueError(f"{text!r} is not of the part of YAML that is known here")
    return text[1:-1] if text.startswith('"') and text.endswith('"') else text


def _without_comment(line: str) -> str:
    return "" if line.startswith("#") else re.sub(r"\s+#.*$", "", line)
