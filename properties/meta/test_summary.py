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


def report(*names: str, reason: str | None = None, verdict: str = "rejected") -> Record:
    """A report: of each candidate one property failed with a note, one was told, and two were not examined."""
    told = prop("threads", finding(f"{FACTOR} (seen at 5x300)"), outcome="reported")
    out = [prop(name, outcome="not-examined", reason="cuda only") for name in ("huge", "graph")]
    facts = {"pinned": "", "instead": "", "unsupported": {"fp16": "TypeError", "fp64": "TypeError"}, "reason": reason}
    seen = [prop("shapes", finding(), rounded=2), told] if reason is None else []
    targets = {"cpu": facts | {"verdict": verdict, "properties": [*seen, *out]}}
    return {
        "run": {"partial": False, "isolated": True},
        "candidates": [{"name": name, "path": f"/{name}.py", "verdict": verdict, "targets": targets} for name in names],
        "not_run": [{"what": f"{each['name']} of {name} on cpu", "why": "cuda only"} for each in out for name in names]
        if seen
        else [],
        "tests": {"deselected": 0},
    }


def test_the_summary_says_what_is_alike_in_one_line() -> None:
    lines = summary.text(report("k", "l"), 100).splitlines()
    assert lines[-1] == "not-examined: huge, graph of k, l on cpu: cuda only"
    assert "findings: wrong-value in 2 properties" in lines
    assert [line for line in lines if "huge" in line] == lines[-1:], "not in the table either"
    assert lines.count("  not required, and not kept: threads: the fault that it is rejected for") == 2
    assert [line.split()[1] for line in lines if line.startswith("threads ")] == ["told", "told"]
    assert lines.count("  not supported: fp16, fp64: TypeError") == 2
    assert lines.count("  noticed: rounded (2 cases)") == 2


def test_the_table_says_where_the_worst_was_seen_and_cuts_nothing_off() -> None:
    made = report("k")
    (shapes, *_) = made["candidates"][0]["targets"]["cpu"]["properties"]
    case = "shapes:shape=257x1023,dtype=float32,layout=offset3,values=signed,seed=123"
    shapes["worst"] = {"mean error / limit, fp32": {"value": 0.25, "bound": 1.0, "case": case}}
    (line,) = (line for line in summary.text(made, 80).splitlines() if line.startswith("shapes"))
    assert line.split()[-4:] == ["0.25", "257x1023", "float32", "offset3"]
    assert line.split()[-5] == "-", "of what has no figure"


def test_what_is_only_told_is_not_the_worst_of_its_type() -> None:
    made = report("k")
    shapes, told, *_ = made["candidates"][0]["targets"]["cpu"]["properties"]
    for each, value in ((shapes, 0.25), (told, 7e7)):
        each["worst"] = {"mean error / limit, fp32": {"value": value, "bound": 1.0, "case": "shapes:shape=2x3"}}
    (line,) = (line for line in summary.text(made, 100).splitlines() if line.startswith("  worst in fp32"))
    assert line.endswith("mean error / limit 0.25")


def test_who_could_not_be_judged_has_the_reason_and_no_table() -> None:
    (line,) = summary.text(report("k", reason="needs a GPU", verdict="not-judged"), 100).splitlines()[1:]
    assert line == "k: not-judged: needs a GPU"


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
