"""Candidate and base are called what the caller calls them: the files of two commits have one name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ci import fakes

from .. import gate_plugin, gate_report
from ..gate_options import read
from ..options import ROOT

USUAL = fakes.gate(fakes.gate_case())


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ({"candidate_label": "the working tree", "base_label": "v1 (01234)"}, "the working tree against v1 (01234) on"),
        ({}, f"{USUAL.candidate.label} against {USUAL.base.label} on"),
    ],
)
def test_table_and_record_say_what_was_compared(given: dict[str, str], title: str) -> None:
    made = SimpleNamespace(options=read(given.get, ROOT), record=lambda: USUAL)
    assert gate_report.table(gate_plugin._record(made), 140).startswith(title)  # type: ignore[arg-type]
