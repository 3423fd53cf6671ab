"""The exit code and the summary that a report means, in every branch."""

import json
import shlex
from pathlib import Path

import pytest

from ci import fakes, summary
from ci.exits import INTERNAL, OK, REJECTED, UNAVAILABLE, USAGE
from ci.report import ReportError, exit_code, read

ACCEPTED = fakes.candidate()
SHIPPED_ON_CPU = fakes.candidate(shipped=True, cpu=fakes.target(), cuda=fakes.target("not-judged", reason="no GPU"))
NOT_JUDGED = fakes.candidate("not-judged", cuda=fakes.target("not-judged", reason="no GPU"))


def code_of(document: dict[str, object]) -> int:
    return exit_code(read(json.dumps(document)))


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (fakes.report(ACCEPTED), OK),
        (fakes.report(SHIPPED_ON_CPU), OK),
        (fakes.report(fakes.candidate("rejected"), failed=1), REJECTED),
        (fakes.report(fakes.candidate("does-not-build")), REJECTED),
        (fakes.report(fakes.candidate("timeout")), REJECTED),
        (fakes.report(ACCEPTED, fakes.candidate("rejected")), REJECTED),
        (fakes.report(NOT_JUDGED, fakes.candidate("rejected")), REJECTED),
        (fakes.report(fakes.candidate("accepted", cpu=fakes.target(), cuda=fakes.target("rejected"))), REJECTED),
        (fakes.report(ACCEPTED, failed=1), REJECTED),
        (fakes.report(NOT_JUDGED), UNAVAILABLE),
        (fakes.report(ACCEPTED, NOT_JUDGED), UNAVAILABLE),
        (fakes.report(fakes.candidate("not-judged", cpu=fakes.target())), UNAVAILABLE),
        (fakes.report(), UNAVAILABLE),
        (fakes.report(ACCEPTED, passed=0), UNAVAILABLE),
        (fakes.report(fakes.candidate("accepted", cpu=fakes.target("not-judged"))), UNAVAILABLE),
        (fakes.report(ACCEPTED, internal_errors=["worker: KeyError"]), INTERNAL),
        (fakes.report(fakes.candidate("rejected"), internal_errors=["worker: KeyError"]), INTERNAL),
        (fakes.report(ACCEPTED, isolated=False), INTERNAL),
        (fakes.report(usage_error="no such profile"), USAGE),
        (fakes.report(usage_error="no such profile", internal_errors=["x"]), USAGE),
    ],
)
def test_the_exit_code_follows_from_the_report(document: dict[str, object], code: int) -> None:
    assert code_of(document) == code


def test_a_candidate_that_nobody_could_read_is_not_accepted() -> None:
    document = fakes.report(ACCEPTED)
    document["not_run"] = [{"what": "x.py", "why": "cannot be read: Permission denied"}]
    assert code_of(document) == UNAVAILABLE


def test_an_error_outside_the_tests_counts_as_failed() -> None:
    document = fakes.report(ACCEPTED)
    document["tests"] = {"passed": 3, "failed": 0, "skipped": 0, "deselected": 0, "errors": 1}
    assert code_of(document) == REJECTED


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": 2}, "schema 2"),
        ({"candidates": {}}, "report.candidates is no list"),
        ({"candidates": [fakes.candidate("perfect")]}, "'perfect'"),
        ({"candidates": ["k.py"]}, r"report.candidates\[0\] is no object"),
        ({"tests": {"passed": -1}}, "report.tests.passed is no count"),
        ({"tests": {"passed": True}}, "report.tests.passed is no count"),
        ({"tests": {"passed": 1}}, "lacks 'failed'"),
        ({"run": None}, "report.run is no object"),
        ({"not_run": [{"what": 3, "why": ""}]}, r"not_run\[0\].what is no text"),
    ],
)
def test_a_report_that_cannot_be_read_is_an_error_that_names_the_place(
    change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ReportError, match=complaint):
        read(json.dumps(fakes.report(ACCEPTED) | change))


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(ReportError, match="no JSON"):
        read('{"schema": 1')


def test_unknown_fields_are_ignored() -> None:
    assert code_of(fakes.report(ACCEPTED | {"later": 1}) | {"later": 1}) == OK


def test_a_call_that_was_wrong_needs_no_more_than_its_error() -> None:
    document: dict[str, object] = {"schema": 1, "run": {"usage_error": "no such profile"}}
    assert code_of(document) == USAGE
    with pytest.raises(ReportError):
        code_of({"schema": 1, "run": {"usage_error": None}})


def test_a_run_that_judged_nothing_says_so() -> None:
    assert "no candidate was judged" in lines_of(fakes.report())
    document = fakes.report(passed=0)
    document["tests"] = dict.fromkeys(("passed", "failed", "skipped", "errors"), 0) | {"deselected": 99}
    assert "no candidate was judged: no property was chosen" in lines_of(document)


def lines_of(document: dict[str, object]) -> list[str]:
    return summary.lines(read(json.dumps(document)), summary.replay_command(Path("/my checkout"), None))


def test_the_summary_says_what_ran_and_what_did_not() -> None:
    lines = lines_of(fakes.report(SHIPPED_ON_CPU))
    assert lines == [
        "kernelproof: torch 2.11.0, no GPU, profile kp-default, seed 0",
        "accepted: /some where/k.py (shipped)",
        "  cpu: accepted: 100 examples of 1 property",
        "  cuda: not-judged (no GPU)",
        "tests: 3 passed, 0 failed, 0 errors, 1 skipped, 2 deselected",
        "not run: cuda: no GPU",
    ]


def test_the_replay_command_is_one_that_a_shell_splits_into_the_same_words() -> None:
    replay = next(line for line in lines_of(fakes.report(fakes.candidate("rejected"))) if "replay:" in line)
    assert shlex.split(replay.split("replay:", 1)[1]) == [
        "/my checkout/ci/verify",
        "--candidate=/some where/k.py",
        "--target=cpu",
        "--case=shape=4x8;seed=3",
    ]


def test_the_replay_of_the_shipped_kernel_names_no_candidate_and_a_venv_names_its_python() -> None:
    document = fakes.report(fakes.candidate("rejected", shipped=True, cpu=fakes.target("rejected", shipped=True)))
    command = summary.replay_command(Path("/here"), "/my env/bin/python")
    replay = next(line for line in summary.lines(read(json.dumps(document)), command) if "replay:" in line)
    assert "--candidate" not in replay
    assert "PYTHON='/my env/bin/python' /here/ci/verify --target=cpu" in replay


def test_a_finding_without_a_case_is_shown_without_a_replay() -> None:
    properties = [{"name": "build", "outcome": "failed", "examples": 0, "findings": [fakes.finding(case="")]}]
    document = fakes.report(
        fakes.candidate("does-not-build", cpu=fakes.target("does-not-build", properties=properties))
    )
    lines = lines_of(document)
    assert "    wrong-value: off by the factor 8" in lines
    assert not any("replay" in line for line in lines)


def test_what_is_only_told_is_named_and_never_the_reason_of_a_rejection() -> None:
    told = {"name": "determinism", "outcome": "reported", "examples": 9, "findings": [fakes.finding("other bits")]}
    failed = {"name": "odd", "outcome": "failed", "examples": 9, "findings": [fakes.finding("no absolute value")]}
    target = fakes.target("rejected", properties=[told, failed])
    lines = lines_of(fakes.report(fakes.candidate("rejected", cpu=target)))
    assert "    wrong-value: no absolute value" in lines
    place = lines.index("    not required, and not kept: determinism: other bits")
    assert lines[place + 1] == "      smallest case: shape=4x8;seed=3"
    replay = "'/my checkout/ci/verify' '--candidate=/some where/k.py' --target=cpu '--case=shape=4x8;seed=3'"
    assert lines[place + 2] == f"      replay: {replay}"


def test_a_whole_run_is_shown_again_with_what_draws_its_cases() -> None:
    found = fakes.finding() | {"replay": "PYTHON='/my env/bin/python' /x/ci/verify --target=cpu --hypothesis-seed=5"}
    properties = [{"name": "odd", "outcome": "failed", "examples": 9, "findings": [found]}]
    document = fakes.report(fakes.candidate("rejected", cpu=fakes.target("rejected", properties=properties)))
    assert "    replay: '/my checkout/ci/verify' --target=cpu --hypothesis-seed=5" in lines_of(document)


def out(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "outcome": "not-examined", "examples": 0, "findings": [], "reason": "cuda only"} | more


def test_of_all_candidates_it_says_what_was_noticed_and_once_what_was_not_examined() -> None:
    seen = {"name": "odd", "outcome": "passed", "examples": 9, "findings": [], "notes": {"the mean is rounded": 2}}
    noted = fakes.target(properties=[seen, out("huge"), out("graph")])
    plain = fakes.target(properties=[seen | {"notes": {}}, out("huge"), out("graph")])
    document = fakes.report(fakes.candidate(cpu=noted), fakes.candidate(cpu=plain) | {"name": "l", "path": "/l.py"})
    document["not_run"] = [
        {"what": f"{prop} of {name} on cpu", "why": "cuda only"} for prop in ("huge", "graph") for name in "kl"
    ]
    lines = lines_of(document)
    assert "  cpu: accepted: 9 examples of 1 property, 2 not-examined" in lines
    assert lines.count("    noticed: the mean is rounded (2 cases)") == 1
    assert [line for line in lines if "huge" in line] == ["not-examined: huge, graph of k, l on cpu: cuda only"]


def test_where_nothing_was_examined_the_reason_is_the_verdicts() -> None:
    contact = {"name": "contact", "outcome": "failed", "examples": 1, "findings": [fakes.finding("does not parse")]}
    document = fakes.report(
        fakes.candidate("does-not-build", cpu=fakes.target("does-not-build", properties=[contact, out("odd")]))
    )
    lines = lines_of(document)
    assert "  cpu: does-not-build: 1 example of 1 property, 1 failed, 1 not-examined" in lines
    assert not any(line.startswith("not-examined") for line in lines)


def test_a_part_of_the_properties_is_no_verdict() -> None:
    document = fakes.report(ACCEPTED)
    run = document["run"]
    assert isinstance(run, dict)
    run["partial"] = True
    assert "accepted in what was run: /some where/k.py" in lines_of(document)
    turned_away = fakes.report(fakes.candidate("rejected"), partial=True)
    assert "rejected: /some where/k.py" in lines_of(turned_away), "what was found there stands"


def test_the_summary_names_usage_and_internal_errors_and_missing_isolation() -> None:
    assert lines_of(fakes.report(usage_error="no such profile")) == ["kernelproof: called wrongly: no such profile"]
    lines = lines_of(fakes.report(ACCEPTED, internal_errors=["worker: KeyError"], isolated=False))
    assert "internal error: worker: KeyError" in lines
    assert "internal error: the candidates were not isolated" in lines


def test_unsupported_parts_are_named() -> None:
    supported_less = fakes.target(unsupported={"float16": "TypeError"})
    assert "    not supported: float16: TypeError" in lines_of(fakes.report(fakes.candidate(cpu=supported_less)))
