"""The gate: every expected case is timed against its base in one run, and must be as fast."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ci.gate_record import Case

from . import gate


@pytest.mark.gate
def test_is_as_fast_as_its_base(duel: Callable[[], Case]) -> None:
    case = duel()
    if not gate.passes(case):
        pytest.fail(gate.words(case), pytrace=False)
