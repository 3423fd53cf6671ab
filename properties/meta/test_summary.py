"""What a person reads at the end of a run: each fault once, and nothing that is counted left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .. import summary
from ..records import Record
from .test_plugin import WRONG, run

FACTOR = "too small by the factor 301"
WHO: Record = {"path": "/k.py", "name": "k", "target": "cpu"}


def finding(text: str = f"{FACTOR} (seen at 5x301)", kind: str = "wrong-value") -> Record:
    return {"kind": kind, "text": text, "details": ["row 0"], "case": "odd:shape=1x2", "replay": "verify --case"}


def prop(name: str, *findings: Record, outcome: str = "failed", reason: str = "", **notes: int) -> Record:
    zero = {"examples": 3, "unsupported": 0, "seconds": 0.1, "worst": {}, "not_run": {}, "drawn": {}}
    facts = {"name": name, "promise": f"Of {name}.", "outcome": outcome, "reason": reason, "notes": notes}
    return zero | facts | {"findings": list(findings)}


def test_a_fault_is_told_in_full_once_by_the_plainest_property() -> None:
    found = [
        (WHO, prop("read-only", finding())),
        (WHO, prop("settings", finding(f"{FACTOR} (seen at 5x300)"))),
        (WHO, prop("history", finding(kind="stale-result"))),
        (WHO, prop("shapes", finding())),
        (WHO, prop("values", finding(FACTOR))),
        (WHO, prop("threads", finding(), outcome="reported")),
    ]
    (first, block), (second, other) = summary.failures(found)
    assert (first, second) == ("shapes of k on cpu", "history of k on cpu")
    assert block.startswith("k on cpu: Of shapes.\n\nwrong-value: too small by the factor 301 (seen at 5x301)")
    assert block.splitlines()[-1] == "the same in: values, read-only, settings"
    assert "the same in" not in other
    assert "    row 0" in block
    assert "    row 0" in other


def test_a_fault_of_two_candidates_is_told_of_both() -> None:
    other = WHO | {"path": "/l.py", "name": "l"}
    found = [(other, prop("odd", finding())), (WHO, prop("shapes", finding())), (other, prop("shapes", finding()))]
    assert [title for title, _ in summary.failures(found)] == ["shapes of l on cpu", "shapes of k on cpu"]


@pytest.mark.parametrize("ci", ["", "1"])
def test_pytest_shows_one_block_and_counts_every_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.setenv(name, ci)
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    seen = run(tmp_path, "--candidate=wrong.py", "-k", "negating or add_up", "--report-json=out.json", "-rf")
    assert seen.stdout.count("smallest case") == 1, seen.stdout
    assert "the same in: total" in seen.stdout
    assert "FAILURES" not in seen.stdout
    assert "2 failed" in seen.stdout
    assert seen.stdout.count("FAILED ") == 2
    (entry,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["candidates"]
    assert [len(each["findings"]) for each in entry["targets"]["cpu"]["properties"]] == [1, 1]
