"""The kill matrix: all mutants are killed for their own reasons, no honest variant is rejected.

`pytest -m mutants` runs it and prints which property killed whom, with what words, and what the usual check would have
said: every specimen on cpu and, where there is a GPU, on cuda, unless `--target` names one of them. What this machine
lacks the target for is skipped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import kill_matrix, kill_report
from .kill_matrix import Kill, Trial
from .kill_plugin import NOT_JUDGED
from .plugin import run_of
from .session import Session
from .targets import machine
from .usual_check import Checks

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


@pytest.fixture(scope="module")
def checks(request: pytest.FixtureRequest) -> Iterator[Checks]:
    """The usual check of all."""
    made = Checks(run_of(request.config).options)
    yield made
    made.close()


def test_an_honest_variant_is_accepted(
    honest: Trial, session: Session, checks: Checks, request: pytest.FixtureRequest
) -> None:
    _skip(honest.missing, honest, request)
    kill = kill_matrix.judge(session, honest)
    told = _tell(kill, session, checks, request)
    assert not kill.findings, kill_report.line(told)
    assert told.cases > ENOUGH, "hardly anything of it was judged"


def test_a_mutant_is_killed_for_its_own_reason(
    mutant: Trial, session: Session, checks: Checks, request: pytest.FixtureRequest
) -> None:
    _skip(mutant.missing, mutant, request)
    kill = kill_matrix.judge(session, mutant)
    _skip(kill_matrix.not_run(kill), mutant, request)
    told = _tell(kill, session, checks, request)
    wrong = kill_matrix.complaint(kill)
    assert not wrong, f"{wrong}\n{kill_report.line(told)}"


def _skip(why: str, trial: Trial, request: pytest.FixtureRequest) -> None:
    """Skip a specimen that this machine lacks something for; why travels along."""
    if why:
        request.node.user_properties.append((NOT_JUDGED, f"{trial}\t{why}"))
        pytest.skip(f"not judged: {why}")


def _tell(kill: Kill, session: Session, checks: Checks, request: pytest.FixtureRequest) -> kill_report.Fact:
    """What is to be told of a specimen; it travels along."""
    trial = kill.trial
    killers = {}
    if trial.specimen.kinds and request.config.getoption("sole_killers"):
        killers = {name: str(kind) for name, kind in kill_matrix.killers(session, kill).items()}
    told = kill_report.fact(
        kill, checks.check(trial.specimen.path, trial.target, kill_matrix.limits(session, trial)), killers
    )
    request.node.user_properties.append((told.key, str(told)))
    return told
