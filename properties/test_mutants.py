"""The kill matrix: all mutants are killed for their own reasons, no honest variant is rejected.

`pytest -m mutants` runs it and prints which property killed whom, with what words: every specimen on cpu and, where
there is a GPU, on cuda, unless `--target` names one of them. What this machine lacks the target for is skipped and
counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import kill_matrix
from .kill_matrix import Trial
from .plugin import run_of
from .session import Session
from .targets import machine

pytestmark = [pytest.mark.mutants, pytest.mark.timeout(600)]

#: Cases that must have been judged before an honest variant counts as accepted.
ENOUGH = 300


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every specimen of a folder on every target that was asked for: the honest first, theirs take longest."""
    for name, folder in (("honest", "honest"), ("mutant", "mutants")):
        if name in metafunc.fixturenames:
            targets = run_of(metafunc.config).options.targets
            trials = kill_matrix.trials(kill_matrix.specimens(folder), targets, machine().no_gpu)
            metafunc.parametrize(name, trials, ids=str)


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """One session, so one nursery, for all."""
    made = Session(run_of(request.config).options, machine(), kill_matrix.SEED)
    yield made
    made.close()


def test_an_honest_variant_is_accepted(honest: Trial, session: Session) -> None:
    if honest.missing:
        pytest.skip(f"not judged: {honest.missing}")
    kill = kill_matrix.judge(session, honest)
    assert not kill.findings, kill_matrix.line(kill)
    assert sum(each.examples for each in kill.examinations) > ENOUGH, "hardly anything of it was judged"


def test_a_mutant_is_killed_for_its_own_reason(mutant: Trial, session: Session, request: pytest.FixtureRequest) -> None:
    if mutant.missing:
        pytest.skip(f"not judged: {mutant.missing}")
    kill = kill_matrix.judge(session, mutant)
    if why := kill_matrix.not_run(kill):
        pytest.skip(f"not judged: {why}")
    request.node.user_properties.append((kill_matrix.KEY, kill_matrix.line(kill)))
    wrong = kill_matrix.complaint(kill)
    assert not wrong, f"{wrong}\n{kill_matrix.line(kill)}"
