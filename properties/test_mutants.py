"""The kill matrix: all mutants are killed for their own reasons, no honest variant is rejected.

`pytest -m mutants` runs it and prints which property killed whom, with what words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import kill_matrix
from .kill_matrix import Specimen
from .plugin import run_of
from .session import Session
from .targets import machine

pytestmark = [pytest.mark.mutants, pytest.mark.timeout(600)]

MUTANTS = kill_matrix.specimens("mutants")
HONEST = kill_matrix.specimens("honest")


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """One session, so one nursery, for all."""
    made = Session(run_of(request.config).options, machine(), kill_matrix.SEED)
    yield made
    made.close()


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_is_killed_for_its_own_reason(
    mutant: Specimen, session: Session, request: pytest.FixtureRequest
) -> None:
    kill = kill_matrix.judge(session, mutant)
    request.node.user_properties.append((kill_matrix.KEY, kill_matrix.line(kill)))
    wrong = kill_matrix.complaint(kill)
    assert not wrong, f"{wrong}\n{kill_matrix.line(kill)}"
    if mutant.replays:
        again = {finding.kind for finding in kill_matrix.again(session, kill)}
        assert again & mutant.kinds, f"{kill.property}:{kill.case} passes, or fails otherwise, in a fresh process"


@pytest.mark.parametrize("variant", HONEST, ids=str)
def test_an_honest_variant_is_accepted(variant: Specimen, session: Session) -> None:
    kill = kill_matrix.judge(session, variant)
    assert not kill.findings, kill_matrix.line(kill)
    assert sum(each.examples for each in kill.examinations) > 300, "hardly anything of it was judged"
