"""What pytest's ``-m`` and ``-k`` ask for of ours: which kinds of tests, and which properties.

``-k`` with names of properties alone means exactly those: ``values`` does not bring along what stands in the file of
that name. Any other expression is pytest's to read, which looks for its words in the names of files and tests, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from _pytest.mark.expression import Expression

from .catalogue import CATALOGUE

#: The properties by name, as ``-k`` can ask for them and reports show them.
NAMES = ("contact", *CATALOGUE)
_OPERATORS = ("and", "or", "not")


def wanted(markers: str, marker: str = "benchmark") -> bool:
    """Whether the expression after ``-m`` asks for what bears this marker, rather than only naming it after "not"."""
    return bool(re.search(rf"\b{marker}\b", re.sub(rf"\bnot\s+\(?\s*{marker}\b", "", markers)))


def exact(expression: str) -> Callable[[str], bool] | None:
    """Whether a property of this name is asked for; None of an expression with other words than properties' names."""
    words = [word for word in re.findall(r"[^\s()]+", expression) if word not in _OPERATORS]
    if not words or any(word not in NAMES for word in words):
        return None
    try:
        compiled = Expression.compile(expression)
    except SyntaxError:  # pytest says what is wrong with it
        return None

    def chosen(name: str) -> bool:
        def same(word: str, /, **_: object) -> bool:
            return word == name

        return compiled.evaluate(same)

    return chosen


def unmatched(expression: str) -> str:
    """What to say of an expression that no property matches."""
    return f"-k {expression}: no property matches; there are {', '.join(NAMES)}"
