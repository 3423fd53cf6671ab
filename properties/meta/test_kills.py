"""One mutant a kind of finding is killed, and an honest variant is not: the kill matrix in small, on every test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .. import kill_matrix
from ..plugin import run_of
from ..session import Session
from ..targets import machine

#: By the kind that is looked for. Kinds that only a GPU or a promise brings are not among them.
ONE_A_KIND = {
    "wrong-value": "sum_for_mean",
    "wrong-special": "skips_zero_rows",
    "not-written": "multiple_of_256_only",
    "input-modified": "in_place",
    "aliased-output": "reused_output",
    "stale-result": "cached_by_address",
    "out-of-bounds": "cpp_overread",
    "wrong-shape": "returns_mean",
    "wrong-dtype": "float32_result",
    "wrong-type": "returns_tuple",
    "nondeterministic": "random_noise",
    "state-leak": "wrong_from_50th_call",
    "crash": "aborts",
    "timeout": "import_sleeps",
    "does-not-build": "cpp_does_not_compile",
    "unsupported": "raises_system_exit",
}


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    made = Session(run_of(request.config).options, machine(), kill_matrix.SEED)
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "name"), ONE_A_KIND.items(), ids=ONE_A_KIND)
def test_a_mutant_of_each_kind_is_killed(kind: str, name: str, session: Session) -> None:
    mutant = kill_matrix.read(kill_matrix.FOLDER / "mutants" / f"{name}.py")
    kill = kill_matrix.judge(session, mutant)
    assert not kill_matrix.complaint(kill), kill_matrix.line(kill)
    assert kill.findings[0].kind == kind


def test_a_survivor_is_complained_about() -> None:
    honest = kill_matrix.read(kill_matrix.FOLDER / "honest" / "eager.py")
    kill = kill_matrix.Kill(honest, "", (), None, ())
    assert kill_matrix.complaint(kill).startswith("eager survives")
