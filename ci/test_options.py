"""Options are checked before anything is set up, and reach pytest in one form."""

from pathlib import Path

import pytest

from ci.exits import USAGE, Stop
from ci.options import Options, parse_verify, verify_parser, without_options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my kernel.py").write_text("class ModelNew: ...\n", encoding="utf-8")
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / "a.py").write_text("class ModelNew: ...\n", encoding="utf-8")
    (tmp_path / "none").mkdir()
    return tmp_path


@pytest.mark.parametrize("words", [["--candidate", "my kernel.py"], ["--candidate=my kernel.py"]])
def test_a_candidate_is_passed_as_one_word_with_an_absolute_path(folder: Path, words: list[str]) -> None:
    assert parse_verify(words, {}, folder).pytest_arguments() == [f"--candidate={folder}/my kernel.py"]


def test_candidates_repeat_and_may_be_folders(folder: Path) -> None:
    options = parse_verify(["--candidate", "several", "--candidate=./several/../my kernel.py"], {}, folder)
    assert options.candidates == (folder / "several", folder / "my kernel.py")


def test_every_option_reaches_pytest_as_name_and_value(folder: Path) -> None:
    words = ["--target", "cpu", "--require-gpu", "--require", "accuracy,strides", "--profile", "kp-quick"]
    words += ["--case=--odd one", "--hypothesis-seed", "7", "--call-timeout", "2.5", "--build-timeout=60"]
    words += ["-k", "scale", "-n", "2", "-x", "-vv", "--cache-dir", "builds", "--report-json=r.json", "--offline"]
    words += ["--junitxml", "r.xml"]
    options = parse_verify(words, {}, folder)
    assert options.pytest_arguments() == [
        "--target=cpu",
        "--profile=kp-quick",
        "--case=--odd one",
        "--hypothesis-seed=7",
        "--call-timeout=2.5",
        "--build-timeout=60",
        "--require=accuracy,strides",
        "--require-gpu",
        "-k",
        "scale",
        "--exitfirst",
        "-v",
        "-v",
        "--numprocesses=2",
        f"--cache-dir={folder}/builds",
        f"--junitxml={folder}/r.xml",
    ]
    assert options.report == folder / "r.json"
    assert options.offline


def test_the_isolation_that_is_always_in_force_may_be_named(folder: Path) -> None:
    assert parse_verify(["--isolation=process"], {}, folder) == Options()


def test_no_option_is_no_argument(folder: Path) -> None:
    assert parse_verify([], {"HOME": "/root"}, folder) == Options()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--candidte=k.py"], "unknown option --candidte"),
        (["--target=tpu"], "tpu"),
        (["my kernel.py"], "did you mean --candidate=my kernel.py"),
        (["nowhere.py"], "unexpected argument nowhere.py"),
        (["--candidate=nowhere.py"], "there is no file"),
        (["--candidate=none"], "no Python file in the folder"),
        (["--candidate"], "expected one argument"),
        (["--isolation=none"], "debugging"),
        (["--isolation", "none"], "debugging"),
        (["--isolation=some"], "unknown mode"),
        (["--call-timeout=0"], "positive number of seconds"),
        (["--build-timeout=soon"], "positive number of seconds"),
        (["-n", "many"], "number of processes"),
        (["--report-json=nowhere/r.json"], "cannot write"),
        (["--report-json=several"], "cannot write"),
        (["--junitxml=nowhere/r.xml"], "--junitxml=nowhere/r.xml: cannot write"),
        (["--prof=kp-quick"], "unknown option --prof"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_64(folder: Path, words: list[str], complaint: str) -> None:
    with pytest.raises(Stop, match=complaint) as stopped:
        parse_verify(words, {}, folder)
    assert stopped.value.code == USAGE
    assert "\n" not in stopped.value.line


def test_an_environment_variable_stands_for_each_option(folder: Path) -> None:
    variables = {
        "KERNELPROOF_CANDIDATE": "my kernel.py:several",
        "KERNELPROOF_TARGET": "cpu",
        "KERNELPROOF_REQUIRE_GPU": "1",
        "KERNELPROOF_OFFLINE": "no",
        "KERNELPROOF_PROFILE": "",
        "KERNELPROOF_CACHE": "/elsewhere",
    }
    options = parse_verify([], variables, folder)
    assert options == Options(
        candidates=(folder / "my kernel.py", folder / "several"), passed=("--target=cpu", "--require-gpu")
    )


def test_the_command_line_wins_over_an_environment_variable(folder: Path) -> None:
    options = parse_verify(["--target=all"], {"KERNELPROOF_TARGET": "cpu"}, folder)
    assert options.passed == ("--target=all",)


def test_isolation_cannot_be_lifted_by_an_environment_variable(folder: Path) -> None:
    with pytest.raises(Stop, match="debugging"):
        parse_verify([], {"KERNELPROOF_ISOLATION": "none"}, folder)


def test_a_switch_in_the_environment_is_yes_or_no(folder: Path) -> None:
    with pytest.raises(Stop, match="KERNELPROOF_REQUIRE_GPU=maybe: expected 1 or 0"):
        parse_verify([], {"KERNELPROOF_REQUIRE_GPU": "maybe"}, folder)


def test_variables_of_options_do_not_reach_pytest_twice() -> None:
    variables = {"KERNELPROOF_CANDIDATE": "k.py", "KERNELPROOF_CACHE": "/c", "PATH": "/bin"}
    assert without_options(variables, verify_parser()) == {"KERNELPROOF_CACHE": "/c", "PATH": "/bin"}


def test_help_explains_every_option_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_verify(["--help"], {}, Path("/"))
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(action.help for action in verify_parser()._actions)
    assert all(f"  {code} " in text for code in (0, 1, 64, 69, 70))
