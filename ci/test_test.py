"""`ci/test`: what its steps' results lead to; no step here runs the real suite."""

import os
import re
from pathlib import Path

import pytest

from ci import environment, fakes, test, verify
from ci.exits import INTERNAL, OK, REJECTED, UNAVAILABLE, USAGE, Stop
from ci.options import Options
from ci.test import Result

GREEN, RED = Result(OK, "passed", 3, 0, 1), Result(REJECTED, "2 failed", 1, 2, 0)
ABSENT, BROKEN = Result(UNAVAILABLE, "not run: ruff"), Result(INTERNAL, "status 3", 0, 1, 0)


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([GREEN, GREEN], OK),
        ([GREEN, ABSENT], OK),
        ([GREEN, RED], REJECTED),
        ([RED, ABSENT], REJECTED),
        ([ABSENT], UNAVAILABLE),
        ([], UNAVAILABLE),
        ([GREEN, RED, BROKEN], INTERNAL),
    ],
)
def test_the_exit_code_is_that_of_the_worst_step(results: list[Result], code: int) -> None:
    assert test.exit_code({str(index): result for index, result in enumerate(results)}) == code


def test_the_closing_line_sums_over_the_steps_and_stands_alone() -> None:
    assert test.closing_line({"a": GREEN, "b": RED, "c": ABSENT}) == "4 passed, 2 failed, 1 skipped"


def test_every_step_runs_whatever_became_of_the_one_before() -> None:
    ran: list[str] = []

    def step(name: str, result: Result) -> test.Step:
        def run() -> Result:
            ran.append(name)
            return result

        return run

    results = test.run_steps({"a": step("a", RED), "b": step("b", GREEN)})
    assert ran == ["a", "b"]
    assert [result.note for result in results.values()] == ["2 failed", "passed"]
    assert all(result.seconds >= 0 for result in results.values())


JUNIT = (
    '<testsuites><testsuite name="pytest" errors="{errors}" failures="{failures}" '
    'skipped="{skipped}" tests="{tests}"/></testsuites>'
)


def counted(tests: int, failures: int = 0, errors: int = 0, skipped: int = 0) -> str:
    return JUNIT.format(tests=tests, failures=failures, errors=errors, skipped=skipped)


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (0, counted(5, skipped=1), Result(OK, "passed", 4, 0, 1)),
        (1, counted(5, failures=1, errors=1), Result(REJECTED, "2 failed", 3, 2, 0)),
        (2, counted(1, errors=1), Result(REJECTED, "1 failed", 0, 1, 0)),
        (5, counted(0), Result(UNAVAILABLE, "not run: no test")),
        (0, counted(2, skipped=2), Result(UNAVAILABLE, "not run: no test", 0, 0, 2)),
        (3, counted(4), Result(INTERNAL, "pytest ended with status 3", 4, 1, 0)),
        (4, None, Result(INTERNAL, "pytest ended with status 4 and counted nothing", 0, 1, 0)),
        (0, counted(3, failures=1), Result(INTERNAL, "pytest ended with status 0", 2, 1, 0)),
    ],
)
def test_what_pytest_says_becomes_a_result(status: int, text: str | None, expected: Result) -> None:
    assert test.own_tests_result(status, text) == expected


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> environment.Environment:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return environment.Environment(tmp_path, tmp_path, (str(tmp_path / "bin"),), "2.11.0", False, ())


@pytest.mark.parametrize(("status", "code"), [(0, OK), (1, REJECTED), (2, REJECTED)])
def test_a_program_that_ends_with_another_status_than_0_fails_its_step(
    made: environment.Environment, status: int, code: int
) -> None:
    fakes.make_program(made.folder / "bin" / "kernelproof-fake-tool", f"exit {status}")
    result = test.program_step(made, "kernelproof-fake-tool", [])
    assert (result.code, result.passed, result.failed) == (code, int(code == OK), int(code != OK))


def test_a_program_that_is_not_there_is_not_run_and_not_passed(made: environment.Environment) -> None:
    result = test.program_step(made, "kernelproof-fake-tool", [])
    assert (result.code, result.passed, result.failed) == (UNAVAILABLE, 0, 0)
    assert "not run" in result.note


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        (OK, (9, 0, 1), (OK, 9, 0, 1)),
        (REJECTED, (8, 1, 0), (REJECTED, 8, 1, 0)),
        (REJECTED, (9, 0, 0), (REJECTED, 9, 1, 0)),
        (UNAVAILABLE, (0, 0, 0), (UNAVAILABLE, 0, 0, 0)),
        (INTERNAL, (9, 0, 0), (INTERNAL, 9, 1, 0)),
        (USAGE, (0, 0, 0), (INTERNAL, 0, 1, 0)),
    ],
)
def test_the_suites_outcome_becomes_a_result(
    made: environment.Environment,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    tests: tuple[int, int, int],
    expected: tuple[int, int, int, int],
) -> None:
    from ci.report import Tests

    counts = Tests(passed=tests[0], failed=tests[1], skipped=tests[2])
    monkeypatch.setattr(verify, "judge", lambda *_: verify.Outcome(code, ("line",), counts))
    result = test.correctness(made, test.Manner())
    assert (result.code, result.passed, result.failed, result.skipped) == expected


def test_a_whole_run_ends_with_its_counts_alone_on_the_last_line(
    made: environment.Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "ensure", lambda *_, **__: made)
    steps = {"lint": lambda *_: ABSENT, "tests": lambda *_: GREEN, "types": lambda *_: RED}
    monkeypatch.setattr(test, "STEPS", steps)
    assert test.main(["--only=lint", "--only=tests"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 passed, 0 failed, 1 skipped"
    assert any(line.split()[0] == "lint" and "not run: ruff" in line for line in lines if line.strip())
    assert test.main([]) == REJECTED


def test_reports_are_kept_where_they_are_wanted(
    made: environment.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = test.reports_folder("some/reports", tmp_path)
    assert folder == tmp_path / "some" / "reports"
    assert folder.is_dir()
    manner = test.Manner(reports=folder)
    asked: list[Options] = []

    def judge(_made: object, options: Options) -> verify.Outcome:
        asked.append(options)
        return verify.Outcome(OK, ("line",))

    monkeypatch.setattr(verify, "judge", judge)
    test.correctness(made, manner)
    assert (asked[0].report, asked[0].junit) == (folder / "correctness.json", folder / "correctness.xml")

    def run_pytest(_made: object, arguments: list[str], workers: bool) -> int:
        assert not workers
        (found,) = (word for word in arguments if word.startswith("--junitxml="))
        Path(found.removeprefix("--junitxml=")).write_text(counted(5), encoding="utf-8")
        return 0

    monkeypatch.setattr(verify, "run_pytest", run_pytest)
    (folder / "tests.xml").write_text("of an earlier run", encoding="utf-8")
    assert test.own_tests(made, manner) == Result(OK, "passed", 5, 0, 0)
    assert test.mutants(made, manner).passed == 5
    assert test.benchmark(made, test.Manner("4", folder)).passed == 5
    assert sorted(path.name for path in folder.iterdir()) == ["benchmark.xml", "mutants.xml", "tests.xml"]


def test_several_processes_share_out_whole_files(
    made: environment.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run_pytest(_made: object, arguments: list[str], workers: bool) -> int:
        asked.extend([*arguments, f"workers={workers}"])
        return 139

    monkeypatch.setattr(verify, "run_pytest", run_pytest)
    test.own_tests(made, test.Manner("2"))
    assert {"--numprocesses=2", "--dist=loadfile", "workers=True"} <= set(asked)


def test_a_report_of_an_earlier_run_is_not_counted(
    made: environment.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests.xml").write_text(counted(5), encoding="utf-8")
    monkeypatch.setattr(verify, "run_pytest", lambda *_, **__: 139)
    assert test.own_tests(made, test.Manner(reports=tmp_path)).code == INTERNAL


def test_the_kill_matrix_runs_only_when_it_is_named(
    made: environment.Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "ensure", lambda *_, **__: made)
    monkeypatch.setattr(test, "STEPS", {"tests": lambda *_: GREEN, "mutants": lambda *_: RED})
    assert test.main([]) == OK
    assert "== mutants" not in capsys.readouterr().out
    assert test.main(["--only=mutants"]) == REJECTED


def test_a_folder_for_reports_that_cannot_be_made_is_code_64(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Stop, match="--reports=file/x: cannot make") as stopped:
        test.reports_folder("file/x", tmp_path)
    assert stopped.value.code == USAGE


@pytest.mark.parametrize("words", [["--only=everything"], ["--unknown"], ["a.py"]])
def test_what_is_wrong_is_code_64(words: list[str]) -> None:
    with pytest.raises(Stop) as stopped:
        test.parse(words)
    assert stopped.value.code == USAGE


def test_the_steps_are_those_that_the_help_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        test.parse(["--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in test.STEPS)
    assert os.linesep == "\n"


def test_older_reports_of_the_steps_that_run_are_gone_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> environment.Environment:
        raise Stop(UNAVAILABLE, "no environment")

    monkeypatch.setattr(environment, "ensure", fails)
    names = {name for each in test.REPORTS.values() for name in each}
    for name in names:
        (tmp_path / name).write_text("of yesterday", encoding="utf-8")
    with pytest.raises(Stop):
        test.main([f"--reports={tmp_path}", "--only=correctness", "--only=tests"])
    assert {each.name for each in tmp_path.iterdir()} == names - {"correctness.json", "correctness.xml", "tests.xml"}


def test_every_report_that_a_step_writes_is_listed() -> None:
    text = (fakes.CHECKOUT / "ci" / "test.py").read_text(encoding="utf-8").partition("\nREPORTS = ")[0]
    written = re.findall(r'"(\w+\.(?:xml|json|md))"', text)
    assert sorted(written) == sorted(name for each in test.REPORTS.values() for name in each)
