"""Numbers for a person, with as many digits as they need to be told apart: two that differ never look the same."""

from __future__ import annotations

#: Digits that tell any two float64 apart.
_ALL = 17


def apart(first: float, second: float, digits: int = 9) -> tuple[str, str]:
    """Two numbers with so many digits, or with as many more as it takes for them to differ where they do."""
    words = f"{first:.{digits}g}", f"{second:.{digits}g}"
    while words[0] == words[1] and first != second and digits < _ALL:
        digits += 1
        words = f"{first:.{digits}g}", f"{second:.{digits}g}"
    return words


def factor(value: float, digits: int = 6) -> str:
    """A factor that is not 1, or hardly: so many digits, or how far it is from 1 where these would not show it."""
    words = f"{value:.{digits}g}"
    if words != "1" or value == 1:
        return words
    return f"1 {'+' if value > 1 else '-'} {abs(value - 1):.3g}"


def factors(low: float, high: float, digits: int = 6) -> str:
    """A range of factors, as one where they are the same."""
    if low == high:
        return factor(low, digits)
    words = factor(low, digits), factor(high, digits)
    return " to ".join(words if words[0] != words[1] else apart(low, high, digits))
