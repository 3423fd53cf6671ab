"""How a property becomes a test: a function named after its promise, run once for every candidate and target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest

from .examination import Property


class Examine(Protocol):
    """The ``examine`` fixture: examine a property of the test's candidate and fail the test where it does not hold."""

    def __call__(self, prop: Property) -> None:
        """See the class."""


def holds(prop: Property) -> Callable[[Examine], None]:
    """The test that a property holds."""

    @pytest.mark.correctness
    def test(examine: Examine) -> None:
        examine(prop)

    test.__doc__ = prop.promise
    test.kernelproof_property = prop.name  # type: ignore[attr-defined]
    return test
