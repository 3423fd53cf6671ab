"""`ci/gate` on a suite that is a few lines of shell: what it is called with, and what its record leads to."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci import environment, fakes, gate, gate_cases, gate_options, gate_record, test_gate_record
from ci.exits import INTERNAL, OK, REJECTED, TRY_AGAIN, UNAVAILABLE, USAGE, Stop
from ci.gate_base import Version
from ci.gate_options import SHIPPED, Options, parse_gate
from ci.gate_record import Case, Record

WRITE_RECORD = """
for word; do
    case $word in --gate-json=*) [ -f "{record}" ] && cp "{record}" "${{word#--gate-json=}}" ;; esac
    echo "$word" >> "{words}"
done
exit {status}
"""
MADE = Version("HEAD (abc)", "ab" * 20, Path("/b/kernel.py"))
BASE = Version("main (cde)", "cd" * 20, Path("/a base/kernel.py"))
Prepare = Callable[..., environment.Environment]


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    """Makes an environment whose python leaves this record, or none, and ends with this status."""

    def make(record: Record | str | None, status: int = 0) -> environment.Environment:
        made = environment.Environment(tmp_path, tmp_path / "cache", (str(tmp_path / "bin"),), "2.11.0", False, ())
        if record is not None:
            text = record if isinstance(record, str) else gate_record.to_json(record)
            (tmp_path / "record").write_text(text, encoding="utf-8")
        names = {"record": tmp_path / "record", "words": tmp_path / "words", "status": status}
        fakes.make_program(made.python, WRITE_RECORD.format(**names))
        return made

    return make


@pytest.fixture
def run(prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `ci/gate --against` a file on the prepared suite."""

    def go(record: Record | str | None, *arguments: str, status: int = 0) -> int:
        made = prepare(record, status)
        monkeypatch.setattr(environment, "ensure", lambda *_, **__: made)
        (tmp_path / "base.py").write_text("", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return gate.main(["--against=base.py", "--target=cpu", *arguments])

    return go


def test_the_suite_is_told_what_to_compare_and_names_come_back_with_the_record(
    prepare: Prepare, tmp_path: Path
) -> None:
    made = prepare(test_gate_record.record(test_gate_record.SAME_CASE))
    found = gate.measure(made, Options(passed=("-q",), target="cuda"), MADE, BASE)
    assert isinstance(found, Record)
    assert (found.candidate.label, found.candidate.commit) == (MADE.label, MADE.commit)
    assert (found.base.label, found.base.commit) == (BASE.label, BASE.commit)
    words = (tmp_path / "words").read_text(encoding="utf-8").splitlines()
    assert {f"--candidate-label={MADE.label}", f"--base-label={BASE.label}"} <= set(words)
    assert {"gate", "--against=/a base/kernel.py", "--target=cuda", f"--candidate={SHIPPED}", "-q"} <= set(words)


@pytest.mark.parametrize(
    ("verdict", "code"), [("same", OK), ("faster", OK), ("slower", REJECTED), ("undecided", TRY_AGAIN)]
)
@pytest.mark.parametrize("status", [0, 1, 4])
def test_the_code_is_the_records_whatever_pytests_own_was(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], verdict: str, code: int, status: int
) -> None:
    record = test_gate_record.record(replace(test_gate_record.SAME_CASE, verdict=verdict))
    assert run(record, status=status) == code
    assert f"verdict: {verdict} (exit code {code})" in capsys.readouterr().out


def test_a_run_without_a_record_is_an_internal_error(run: Callable[..., int]) -> None:
    assert run(None, status=0) == INTERNAL
    assert run("{}", status=0) == INTERNAL
    assert run("", status=3) == INTERNAL


def test_what_only_the_suite_can_tell_is_a_usage_error_too(run: Callable[..., int]) -> None:
    with pytest.raises(Stop, match="its message stands above") as stop:
        run(None, status=4)
    assert stop.value.code == USAGE


def test_the_record_is_kept_where_it_is_asked_for(run: Callable[..., int], tmp_path: Path) -> None:
    assert run(test_gate_record.record(test_gate_record.SAME_CASE), "--report-json=kept.json") == OK
    assert gate_record.read((tmp_path / "kept.json").read_text(encoding="utf-8")).base.label == "base.py"


@pytest.mark.skipif(not fakes.FULL.exists(), reason=fakes.NO_FULL)
@pytest.mark.parametrize(("verdict", "code"), [("same", INTERNAL), ("slower", REJECTED)])
def test_nothing_is_the_same_without_the_record_that_was_asked_for(
    run: Callable[..., int], verdict: str, code: int
) -> None:
    record = test_gate_record.record(replace(test_gate_record.SAME_CASE, verdict=verdict))
    assert run(record, f"--report-json={fakes.FULL}") == code


def test_without_a_base_every_expected_case_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lone = tmp_path / "kernel.py"
    lone.write_text("", encoding="utf-8")
    kept = tmp_path / "kept.json"
    assert gate.main([f"--candidate={lone}", f"--report-json={kept}"]) == UNAVAILABLE
    found = gate_record.read(kept.read_text(encoding="utf-8"))
    assert [case.name for case in found.cases] == list(gate_cases.read(gate_cases.COMMITTED, "cuda"))
    assert {case.reason for case in found.cases} == {"no-baseline"}
    said = capsys.readouterr().out
    assert "not-measured (no-baseline): 35 cases, 32768x65535-float32 among them: git rev-parse" in said
    assert "not a git repository" in said
    assert "verdict: not-measured (exit code 69)" in said


def test_the_last_lines_name_each_case_that_is_not_the_same() -> None:
    slower = replace(test_gate_record.SAME_CASE, name="9x9-float32", verdict="slower")
    gone = gate_cases.unmeasured("8x8-float32", "shape=8x8", "missing")
    said = gate.lines(test_gate_record.record(test_gate_record.SAME_CASE, slower, gone))
    assert "  slower: 9x9-float32: +0.2 % time, ratio 1.002 [0.998, 1.006]" in said
    assert "  not-measured (missing): 8x8-float32: it is in the list of expected cases and no test measures it" in said
    assert said[-2] == "3 cases in 62 s: slower 1, not-measured 1, undecided 0, faster 0, same 1"
    alike = test_gate_record.record(test_gate_record.SAME_CASE)
    assert not any("A/A" in line for line in gate.lines(alike))
    alike = replace(alike, base=replace(alike.base, digest=alike.candidate.digest))
    assert "A/A: both are the same code (equal digests of their sources)" in gate.lines(alike)


def test_a_part_that_was_asked_for_shows_its_verdict_and_is_no_gate(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    alike = test_gate_record.SAME_CASE
    faster = replace(alike, name="9x9-float32", verdict="faster")
    others = [gate_cases.unmeasured(f"8x{number}-float32", "shape=8x8", "deselected") for number in range(1, 4)]
    assert run(test_gate_record.record(alike, faster, *others), "-k9x9 or 65536x4095", status=1) == UNAVAILABLE
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == [
        "1 case faster, 1 case same; 3 deselected by -k: not a gate",
        "verdict: not-measured (exit code 69)",
    ]
    assert [line.partition(": ")[0] for line in said if "ratio" in line] == ["  same", "  faster"]
    assert not any("8x1-float32" in line for line in said), "what nobody asked for is counted and not listed"


def test_an_expression_that_matches_no_case_is_told_which_there_are(run: Callable[..., int]) -> None:
    others = [gate_cases.unmeasured(f"8x{number}-float32", "shape=8x8", "deselected") for number in (1, 2)]
    with pytest.raises(Stop, match=r"-k 9x9: no case for cpu matches; there are 8x1-float32, 8x2-float32$") as stop:
        run(test_gate_record.record(*others), "-k9x9", status=1)
    assert stop.value.code == USAGE


def test_an_expression_that_is_none_is_a_usage_error(run: Callable[..., int]) -> None:
    others = [gate_cases.unmeasured(f"8x{number}-float32", "shape=8x8", "skipped") for number in (1, 2)]
    with pytest.raises(Stop, match="its message stands above") as stop:
        run(test_gate_record.record(*others), "-k9x9 and", status=4)
    assert stop.value.code == USAGE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base=main", "--stored=0001"], "not allowed with argument"),
        (["--against=nowhere.py"], "--against=nowhere.py: there is no file"),
        (["--minimum-effect=3"], "no share between 0 and 1, such as 0.03 or 3%"),
        (["--minimum-effect=0"], "no share between 0 and 1"),
        (["--target=tpu"], "invalid choice"),
        (["--numprocesses=2"], "unknown option --numprocesses"),
        (["--report-json=/nowhere/x.json"], "cannot write a file"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(tmp_path: Path, words: list[str], said: str) -> None:
    with pytest.raises(Stop, match=said) as stop:
        parse_gate(words, {}, tmp_path)
    assert stop.value.code == USAGE


@pytest.mark.parametrize(
    ("option", "kind", "name"),
    [("--candidate", "Python", "k.py"), ("--against", "Python", "k.py"), ("--cases", "TOML", "c.toml")],
)
def test_a_folder_cannot_be_gated_and_what_it_holds_is_said(tmp_path: Path, option: str, kind: str, name: str) -> None:
    (tmp_path / "some").mkdir()
    said = f"some is a folder, and a gate takes one {kind} file: the folder holds no {kind} file"
    with pytest.raises(Stop, match=said) as stop:
        parse_gate([f"{option}=some"], {}, tmp_path)
    assert stop.value.code == USAGE
    (tmp_path / "some" / name).write_text("", encoding="utf-8")
    with pytest.raises(Stop, match=f"name one of those in it, such as {name}"):
        parse_gate([f"{option}=some"], {}, tmp_path)


def test_options_come_from_the_environment_too(tmp_path: Path) -> None:
    variables = {"KERNELPROOF_GATE_BASE": "v1", "KERNELPROOF_GATE_MINIMUM_EFFECT": "5%", "KERNELPROOF_TARGET": "all"}
    found = parse_gate([], variables, tmp_path)
    assert (found.base, found.target) == ("v1", "cuda"), "variables of ci/verify are not for the gate"
    assert "--minimum-effect=5%" in found.passed
    assert parse_gate(["--base=v2"], variables, tmp_path).base == "v2"


def test_the_help_names_every_verdict_reason_and_code() -> None:
    text = gate_options.gate_parser().format_help()
    assert all(word in text for word in (*gate_record.VERDICTS, *gate_record.REASONS))
    assert all(f"\n  {code} " in text for code in (OK, REJECTED, USAGE, UNAVAILABLE, INTERNAL, TRY_AGAIN))


# --- the list of expected cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cuda", "is no TOML"),
        ("", r"has no table \[cpu\] with a case in it"),
        ("[cpu]", "with a case in it"),
        ("[cpu]\na = 1", "the case 'a' has no line such as"),
        ('[cpu]\na = "dtype=float32"', "has no line such as"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(gate_cases.CasesError, match=said):
        gate_cases.read(path, "cpu")
    with pytest.raises(Stop) as stop:
        gate.main([f"--cases={path}", "--target=cpu"])
    assert stop.value.code == USAGE


def test_a_case_of_the_same_line_and_another_name_was_renamed() -> None:
    expected = {"old": "shape=2x2", "gone": "shape=3x3", "there": "shape=4x4"}
    found = gate_cases.renamed(expected, {"new": "shape=2x2", "there": "shape=4x4"})
    assert list(found) == ["old"]
    assert (found["old"].reason, found["old"].text.partition(":")[0]) == ("renamed", "its name is new now")


def test_an_unmeasured_case_says_what_it_is() -> None:
    found = gate_cases.unmeasured("n", "shape=2x3,dtype=bfloat16,layout=order1.0,seed=1", "skipped", "why")
    assert found == Case("n", "not-measured", "2x3", "bfloat16", "order1.0", reason="skipped", text="why")
    assert json.loads(gate_record.to_json(test_gate_record.record(found)))["exit_code"] == UNAVAILABLE


def test_an_older_record_is_gone_where_a_gate_ends_without_one(run: Callable[..., int], tmp_path: Path) -> None:
    for name in ("gate.json", "gate.xml"):
        (tmp_path / name).write_text("of yesterday", encoding="utf-8")
    assert run(None, "--report-json=gate.json", "--junitxml=gate.xml", status=3) == INTERNAL
    assert not (tmp_path / "gate.json").exists()
    assert not (tmp_path / "gate.xml").exists()
