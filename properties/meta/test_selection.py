"""Names of properties mean exactly those; what is no name is left to pytest, and never passes for nothing."""

from __future__ import annotations

import pytest

from ..catalogue import CATALOGUE
from ..selection import NAMES, exact, unmatched


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("values", ["values"]),
        ("odd or scale-by-two", ["scale-by-two", "odd"]),
        ("not (shapes or values) and (shapes or leak)", ["leak"]),
        ("contact", ["contact"]),
    ],
)
def test_names_of_properties_choose_exactly_those(expression: str, chosen: list[str]) -> None:
    named = exact(expression)
    assert named is not None
    assert [name for name in NAMES if named(name)] == chosen


@pytest.mark.parametrize("expression", ["", "scale", "values or negating", "Values", "odd and", "odd[x=1]", "not"])
def test_any_other_expression_is_left_to_pytest(expression: str) -> None:
    assert exact(expression) is None


def test_who_names_none_is_told_them_all() -> None:
    assert {"contact", *CATALOGUE} <= set(unmatched("xyzzy").replace(",", "").split())
