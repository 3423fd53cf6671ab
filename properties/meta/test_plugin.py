"""The command line end to end: pytest as a user starts it, on tiny candidates and few properties."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..options import ROOT

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return "
RIGHT = f"{HEAD}x / x.abs().mean(1, keepdim=True)\n"
WRONG = f"{HEAD}x / x.abs().sum(1, keepdim=True)\n"


PYTEST = [sys.executable, "-m", "pytest", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")]
PYTEST += ["-p", "no:cacheprovider", "--target=cpu"]


def command(*arguments: str) -> list[str]:
    """Pytest on a few tests of this checkout."""
    files = (str(ROOT / "properties" / f"test_{name}.py") for name in ("contact", "invariances"))
    return [*PYTEST, "-m", "correctness", "--profile=kp-quick", *arguments, *files]


def environment() -> dict[str, str]:
    """Nothing of this run is in it."""
    hidden = ("PYTEST", "KERNELPROOF")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start it from another folder."""
    return ended(folder, command(*arguments))


def ended(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A program that was started in a folder, at its end."""
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "a folder"
    place.mkdir()
    (place / "right one.py").write_text(RIGHT, encoding="utf-8")
    (place / "2 wrong.py").write_text(WRONG, encoding="utf-8")
    return place


def summary(text: str) -> list[str]:
    """The lines of our own summary, seconds aside."""
    lines = text.partition("= kernelproof =")[2].partition("short test summary")[0].splitlines()
    return sorted(" ".join(word for word in line.split() if not word.replace(".", "").isdigit()) for line in lines)


def test_two_candidates_a_report_and_the_same_table_under_xdist(folder: Path) -> None:
    wanted = ["--candidate=right one.py", "--candidate=2 wrong.py", "-k", "loads or negating", "--hypothesis-seed=5"]
    alone = run(folder, *wanted, "--report-json=out.json")
    assert alone.returncode == 1, alone.stdout + alone.stderr
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert [(entry["name"], entry["verdict"]) for entry in report["candidates"]] == [
        ("right one", "accepted"),
        ("2 wrong", "rejected"),
    ]
    assert report["run"]["seed"] == 5
    assert report["tests"]["failed"] == 1
    assert report["tests"]["passed"] == 3
    assert "0/4" not in alone.stdout, "progress is for terminals"
    assert "= columns: the sum was used where the mean belongs" in alone.stdout
    pytest.importorskip("xdist")
    spread = run(folder, *wanted, "-n", "2")
    assert summary(spread.stdout) == summary(alone.stdout)


def test_a_case_is_replayed_and_nothing_else_runs(folder: Path) -> None:
    seen = run(folder, "--candidate=2 wrong.py", "--case=odd:shape=2x5,seed=3", "--report-json=out.json")
    assert seen.returncode == 1
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    properties = report["candidates"][0]["targets"]["cpu"]["properties"]
    assert [(prop["name"], prop["examples"]) for prop in properties] == [("contact", 1), ("odd", 1)]
    assert report["run"]["partial"] is True
    assert "odd:shape=2x5,dtype=float32,values=signed,seed=3" in seen.stdout
    assert "judged by" not in seen.stdout, "of one case there is nothing to count"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--candidate=nowhere.py"], "nowhere.py: no such file or folder"),
        (["--profile=thorough"], "--profile=thorough is not one of kp-quick, kp-default, kp-nightly"),
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
)
def test_a_usage_error_stops_the_run_with_one_line(folder: Path, arguments: list[str], said: str) -> None:
    seen = run(folder, *arguments, "--report-json=out.json")
    assert seen.returncode == 4
    assert said in seen.stderr
    if (folder / "out.json").exists():
        assert said in json.loads((folder / "out.json").read_text(encoding="utf-8"))["run"]["usage_error"]


def test_without_isolation_header_and_verdict_say_so(folder: Path) -> None:
    seen = run(folder, "--candidate=right one.py", "--isolation=none", "-k", "loads")
    assert seen.returncode == 0, seen.stdout
    assert "NOT ISOLATED" in seen.stdout
    assert "accepted in what was run (not isolated: does not count)" in " ".join(seen.stdout.split())


def test_a_missing_gpu_fails_where_one_is_required(folder: Path) -> None:
    seen = run(folder, "--candidate=right one.py", "--require-gpu", "-k", "loads", "--report-json=out.json")
    has_gpu = "no GPU (" not in seen.stdout
    assert seen.returncode == (0 if has_gpu else 1)
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert has_gpu or ("--require-gpu" in seen.stdout and report["tests"]["failed"] == 1)


def test_a_name_chooses_one_property_and_not_what_shares_its_letters(folder: Path) -> None:
    seen = run(folder, "--candidate=right one.py", "-k", "odd or row-order or contact", "--report-json=out.json")
    assert seen.returncode == 0, seen.stdout
    (entry,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))["candidates"]
    assert [prop["name"] for prop in entry["targets"]["cpu"]["properties"]] == ["contact", "odd", "row-order"]
    none = run(folder, "--candidate=right one.py", "-k", "values", "--report-json=out.json")
    assert none.returncode == 5, "test_invariances.py has none, though 'values' is a word of its tests"


def test_where_no_property_is_chosen_they_are_listed_and_there_is_nothing_to_sum_up(folder: Path) -> None:
    seen = run(folder, "--candidate=right one.py", "--target=all", "-k", "no_such_property")
    assert seen.returncode == 5, seen.stdout
    assert "-k no_such_property: no property matches; there are contact, shapes, values," in seen.stdout
    assert "= kernelproof =" not in seen.stdout
    assert "not run" not in seen.stdout


def test_where_there_is_a_report_it_lists_the_properties_for_who_reads_it(folder: Path) -> None:
    pytest.importorskip("xdist")
    seen = run(folder, "--candidate=right one.py", "-k", "no_such_property", "--report-json=out.json", "-n", "2")
    assert seen.returncode == 5, seen.stdout
    said = json.loads((folder / "out.json").read_text(encoding="utf-8"))["run"]["usage_error"]
    assert said.startswith("-k no_such_property: no property matches")


def test_where_there_is_no_target_the_summary_says_why(folder: Path) -> None:
    seen = run(folder, "--candidate=right one.py", "-k", "loads", "--target=cuda")
    assert ("not run: cuda: " in seen.stdout) == ("no GPU (" in seen.stdout)


def test_sigterm_ends_the_workers_and_what_was_judged_until_then_is_no_verdict(folder: Path) -> None:
    (folder / "first.py").write_text(RIGHT, encoding="utf-8")
    hangs = "(open(__file__ + '.pid', 'w').write(str(__import__('os').getpid())), __import__('time').sleep(60))"
    (folder / "hangs.py").write_text(f"{HEAD}x / x.abs().mean(1, keepdim=True) if len(x) == 2 else {hangs}\n")
    wanted = command("--candidate=first.py", "--candidate=hangs.py", "-k", "loads", "--report-json=out.json")
    (folder / "out.json").write_text("of yesterday", encoding="utf-8")
    with subprocess.Popen(wanted, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True) as ran:
        pid, until = folder / "hangs.py.pid", time.monotonic() + 60
        while not (pid.exists() and pid.read_text(encoding="utf-8")):
            assert time.monotonic() < until
            time.sleep(0.05)
        worker = int(pid.read_text(encoding="utf-8"))
        older = (folder / "out.json").exists()
        ran.send_signal(signal.SIGTERM)
        seen, _ = ran.communicate(timeout=30)
    assert ran.returncode == 2, seen
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert found["run"]["internal_errors"] == ["the run was ended early: SIGTERM"]
    assert not older, "what is killed leaves no report of yesterday"
    assert "first: not-judged: interrupted: what was run so far has passed" in " ".join(seen.split())
    assert "accepted" not in seen + json.dumps(found)


def test_a_run_does_not_wait_for_what_only_the_gate_needs() -> None:
    code = "import sys, properties.plugin, properties.gate_plugin; sys.exit('scipy.stats' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(), timeout=120, check=False)
    assert ran.returncode == 0


def test_on_a_terminal_a_line_says_what_runs_and_the_dots_are_gone(folder: Path) -> None:
    ours, theirs = pty.openpty()
    wide = {**environment(), "TERM": "xterm", "COLUMNS": "140"}
    started = command("--candidate=right one.py", "-k", "loads or negating")
    with subprocess.Popen(started, cwd=folder, env=wide, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as ran:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
            while part := os.read(ours, 1 << 16):
                seen += part
        os.close(ours)
    shown = seen.decode()
    assert ran.returncode == 0, shown
    assert "0/2" in shown
    assert "1/2" in shown
    assert "negating the input negates the result (right one-cpu)" in shown, "it moves while tests run"
    assert "test_contact.py" not in shown


def collected(folder: Path, markers: str) -> str:
    """What pytest says that it would run of the whole checkout, or would not."""
    return ended(folder, [*PYTEST, "--collect-only", "-q", "-m", markers, str(ROOT)]).stdout


def test_the_projects_own_tests_are_not_even_looked_at_where_the_suites_are_asked_for(folder: Path) -> None:
    alone, whole = (collected(folder, markers) for markers in ("correctness", "(correctness or benchmark or mutants)"))
    assert "test_every_shape_gives_the_result_of_the_reference" in alone
    assert not any(each in alone + whole for each in ("properties/meta/", "ci/test_")), (
        "behind another word, none is left"
    )
    left = [int(re.findall(r"(\d+) deselected", text)[-1]) for text in (alone, whole)]
    assert left[1] - left[0] > 1000, "most are the project's own"
