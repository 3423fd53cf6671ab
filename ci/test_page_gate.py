"""What a page shows of a gate run: the verdicts of the record, the worst first, with the reason of each."""

import pytest

from ci import fakes, page_content, page_gate
from ci.gate_record import REASONS, STORED, VERDICTS, Contestant, Machine, Record
from ci.page_content import Fold, Items, Section, Table, Text, Verdict


def table(section: Section) -> Table:
    (found,) = (block for block in section.blocks if isinstance(block, Table))
    return found


def words(section: Section) -> str:
    folded = [inside for block in section.blocks if isinstance(block, Fold) for inside in block.blocks]
    blocks = [*section.blocks, *folded]
    texts = [block.words for block in blocks if isinstance(block, Text)]
    return "\n".join([*texts, *(item for block in blocks if isinstance(block, Items) for item in block.items)])


@pytest.fixture
def record() -> Record:
    return fakes.gate(
        fakes.gate_case("4096x4096-float32"),
        fakes.gate_case("16x65535-float32", "not-measured", reason="skipped", text="it needs 34 GiB"),
        fakes.gate_case("1x65535-float32", "slower", 1.052),
        fakes.gate_case("2x65535-float32", "undecided", 1.02),
        fakes.gate_case("3x65535-float32", "faster", 0.9),
        notes=("a remark",),
    )


def test_the_headline_is_the_worst_verdict_with_all_counts(record: Record) -> None:
    found = page_gate.headline(record)
    assert found.verdict == Verdict("slower", "bad")
    assert "1 slower, 1 not-measured, 1 undecided, 1 faster, 1 same (exit code 1)" in found.words
    assert found.words.startswith("HEAD against the merge base with main on NVIDIA H100")


def test_a_gate_without_cases_is_no_good_news() -> None:
    found = page_gate.headline(fakes.gate())
    assert found.verdict == Verdict("not-measured", "warn")
    assert "no case (exit code 69)" in found.words


def test_an_internal_error_is_the_verdict(record: Record) -> None:
    broken = fakes.gate(*record.cases, internal_errors=("KeyError",))
    assert page_gate.headline(broken).verdict == Verdict("internal error", "bad")
    assert "KeyError" in words(page_gate.section(broken))


def test_the_worst_cases_come_first_each_with_its_figures_or_its_reason(record: Record) -> None:
    rows = table(page_gate.section(record)).rows
    assert [row[0] for row in rows] == [
        f"{shape}-float32" for shape in ("1x65535", "16x65535", "2x65535", "3x65535", "4096x4096")
    ]
    assert rows[0][2:] == ("1.052", "1.048 to 1.056", "0.903", "0.950", "40", "")
    assert rows[1][2:] == ("", "", "", "", "", f"{REASONS['skipped']}; it needs 34 GiB")
    assert rows[0][1] == Verdict("slower", "bad")


def test_what_was_chosen_comes_before_what_was_not() -> None:
    left = fakes.gate_case("1x65535-float32", "not-measured", reason="deselected")
    lacking = fakes.gate_case("2x65535-float32", "not-measured", reason="no-memory")
    chosen = fakes.gate_case("3x65535-float32")
    rows = table(page_gate.section(fakes.gate(left, chosen, lacking))).rows
    assert [row[0] for row in rows] == [case.name for case in (lacking, chosen, left)]


def test_every_verdict_has_a_tone_and_a_meaning() -> None:
    assert set(page_gate.TONES) == set(page_gate.MEANINGS) == set(VERDICTS)
    assert set(page_gate.TONES.values()) <= set(page_content.TONES), "else it has no sign, and the page is not written"


def test_what_the_figures_are_to_be_read_beside_is_told(record: Record) -> None:
    text = words(page_gate.section(record))
    assert "An effect counts from 3 %" in text
    assert "in turns in one run, in 187 s" in text
    assert "candidate: HEAD, /checkout/kernels/l1_norm.py, commit 111111111111, SHA-256 of all its sources aaa" in text
    assert "a remark" in text
    assert "GPU: NVIDIA H100 80GB HBM3, driver 580.1" in text
    assert "clocks" not in text
    assert "same code" not in text


def test_an_a_a_run_throttled_clocks_and_a_stored_base_are_told() -> None:
    machine = Machine("0.1.0", "3.12", "2.11", clocks={"sm_mhz_lowest": 1200}, throttled=("power cap",))
    both = Contestant("HEAD", digest="a" * 64, commit="1" * 40 + "+")
    text = words(
        page_gate.section(
            fakes.gate(fakes.gate_case(), machine=machine, candidate=both, base=both, comparison=STORED, target="cpu")
        )
    )
    assert "an A/A run" in text
    assert "held down while measuring: power cap" in text
    assert "against a stored run" in text
    assert "clocks: sm mhz lowest 1200" in text
    assert "commit 111111111111+, SHA-256 of all its sources aaaaaaaaaaaa" in text


def test_a_gate_without_a_base_claims_no_confidence() -> None:
    case = fakes.gate_case("a", "not-measured", reason="no-baseline", text="no git here")
    section = page_gate.section(fakes.gate(case, minimum=0.0, confidence=0.0, gate_confidence=0.0, seconds=0.0))
    assert words(section).startswith("Nothing was measured.")
    assert "0 %" not in words(section) + table(section).caption
