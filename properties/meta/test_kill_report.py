"""What the kill matrix tells: its facts, its lines, its file, and what the usual check lets through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from .. import kill_matrix, kill_report
from ..cases import parse
from ..findings import Finding, Kind
from ..kill_matrix import Kill, Trial
from ..kill_report import Fact
from ..limits import Limits
from ..plugin import run_of
from ..targets import machine
from ..usual_check import Checks, Verdict

KILLED = Fact(
    name="sum_for_mean",
    target="cpu",
    honest=False,
    fault="Divides by the sum | not by the mean.",
    killer="shapes",
    kind="wrong-value",
    case="shape=1x2",
    text="every value is too small",
    cases=3,
    usual=("rejects", "accepts"),
    killers={"shapes": "wrong-value", "values": "wrong-value"},
)
ALONE = replace(KILLED, name="in_place", killers={"history": "input-modified"})
SURVIVOR = replace(KILLED, name="a_survivor", killer="", kind="", case="", text="", usual=("accepts", "accepts"))
HONEST = replace(SURVIVOR, name="eager", honest=True, fault="", killers={})
FACTS = [KILLED, ALONE, SURVIVOR, HONEST]


def test_a_fact_comes_back_from_its_text() -> None:
    assert kill_report.read(str(KILLED)) == KILLED


def test_a_fact_is_made_of_a_kill() -> None:
    specimen = kill_matrix.read(kill_matrix.FOLDER / "mutants" / "sum_for_mean.py")
    said = Finding(Kind.WRONG_VALUE, "too small")
    told = kill_report.fact(
        Kill(Trial(specimen, "cpu"), "shapes", (said,), parse("shape=1x2"), ()), Verdict((False, True))
    )
    assert (told.name, told.killer, told.kind, told.text) == ("sum_for_mean", "shapes", "wrong-value", "too small")
    assert told.usual == ("rejects", "accepts")
    assert not told.honest
    assert not told.survives


def test_the_table_counts_mutants_alone() -> None:
    text = kill_report.table(FACTS)
    assert "3 mutants, 3 on cpu; killed by: shapes 2, nothing 1" in text
    assert "torch.allclose accepts of them: 1 at 1e-4, 3 at 1e-2" in text
    assert "survives 3 cases" in text


def test_only_one_killer_makes_a_sole_killer() -> None:
    alone = kill_report.sole(FACTS)
    assert alone["history"] == ["in_place (cpu)"]
    assert not alone["shapes"]


def test_the_file_tells_counts_rows_and_who_is_missing() -> None:
    text = kill_report.markdown(FACTS, [("cuda_epsilon-cuda", "no CUDA device is visible")], machine())
    assert "| mutants rejected by the suite | 2 of 3 |" in text
    assert "| mutants accepted by the usual check, 1e-4 | 1 |" in text
    assert "| honest variants accepted by the suite | 1 of 1 |" in text
    assert "Divides by the sum \\| not by the mean." in text, "a bar would end the cell"
    assert "**survives**" in text
    assert "| `history` | `in_place (cpu)` |" in text
    assert "1, since no CUDA device is visible: `cuda_epsilon-cuda`." in text
    assert machine().torch in text


# ---- The usual check ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checks(request: pytest.FixtureRequest) -> Iterator[Checks]:
    made = Checks(run_of(request.config).options)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sum_for_mean", ("rejects", "rejects")),
        ("epsilon_1e_12", ("accepts", "accepts")),
        ("mean_in_bfloat16", ("rejects", "accepts")),
        ("returns_mean", ("rejects", "rejects")),
        ("returns_tuple", ("raises AttributeError",) * 2),
        ("lacks_model_new", ("does not load",) * 2),
        ("exits", ("crashes",) * 2),
        ("import_sleeps", ("hangs",) * 2),
    ],
)
def test_the_usual_check_says_what_it_accepts_or_how_it_ended(
    name: str, words: tuple[str, ...], checks: Checks
) -> None:
    path = kill_matrix.FOLDER / "mutants" / f"{name}.py"
    assert checks.check(path, "cpu", Limits(build=3, call=1)).words() == words
