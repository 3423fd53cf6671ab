"""The READMEs tell what there is: words and figures; every outcome and reason, the codes, commands, files."""

import re

import pytest

from ci import exits, gate_record
from ci.fakes import CHECKOUT

README = " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())
TEXT = (CHECKOUT / "ci" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", [*gate_record.VERDICTS, *gate_record.REASONS])
def test_every_outcome_and_every_reason_is_explained(word: str) -> None:
    assert re.search(rf"^\|[^|]*`{word}`[^|]*\| \S", TEXT, re.MULTILINE)


def test_every_exit_code_is_in_the_table() -> None:
    codes = {exits.OK, exits.REJECTED, exits.USAGE, exits.UNAVAILABLE, exits.INTERNAL, exits.INTERRUPTED}
    codes |= {exits.TERMINATED, *gate_record.EXIT_CODES.values()}
    assert set(map(int, re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE))) == codes


@pytest.mark.parametrize("word", ["Told", "Noticed", "Not supported"])
def test_every_word_for_what_does_not_reject_is_defined(word: str) -> None:
    assert re.search(rf"\*{word}\* is \S", README)


@pytest.mark.parametrize(
    "figure", ["u", "scaling / u", "mean error / u", "mean / limit", "scaling error / u", "mean error / limit"]
)
def test_every_figure_of_the_summary_is_explained(figure: str) -> None:
    assert f"*{figure}*" in README


def test_the_files_that_are_named_are_there() -> None:
    named = re.findall(r"`((?:ci|properties|kernels)/[\w./-]+)`", TEXT)
    assert len(named) > 5
    assert [name for name in named if not (CHECKOUT / name).exists()] == []


def test_the_variables_of_the_copied_workflow_are_those_that_it_reads() -> None:
    text = (CHECKOUT / "ci" / "examples" / "guard-my-kernel.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"^#   (KERNELPROOF_\w+)", text, re.MULTILINE)) == set(re.findall(r"vars\.(\w+)", text))
