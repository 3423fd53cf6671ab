"""`ci/verify` on a suite that is a few lines of shell: what it is called with, and what its report leads to."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import environment, facts, fakes, verify
from ci.exits import INTERNAL, INTERRUPTED, NAMED_PYTHON, OK, REJECTED, TERMINATED, UNAVAILABLE, Stop
from ci.options import Options

WRITE_REPORT = """
for word; do
    case $word in --report-json=*) cp "{report}" "${{word#--report-json=}}" ;; esac
    echo "$word" >> "{words}"
done
env > "{variables}"
exit {status}
"""


class Suite:
    """A stand-in for the environment whose python writes a prepared report; keeps what it was called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report, self.words, self.variables = (folder / name for name in ("report", "words", "variables"))
        self.made = environment.Environment(folder, folder / "cache", (str(folder / "bin"),), "2.11.0", False, ())

    def prepare(self, document: dict[str, object] | str | None, status: int = 0) -> None:
        """Let pytest's stand-in leave this report, or none, and end with this status."""
        if document is not None:
            text = document if isinstance(document, str) else json.dumps(document)
            self.report.write_text(text, encoding="utf-8")
        names = {"report": self.report, "words": self.words, "variables": self.variables, "status": status}
        fakes.make_program(self.made.python, WRITE_REPORT.format(**names))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_pytest_is_called_on_the_checkout_with_our_plugins_only(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPROOF_TARGET", "all")
    suite.prepare(fakes.report(fakes.candidate()))
    verify.judge(suite.made, Options(candidates=(Path("/my k.py"),), passed=("--target=cpu",)))
    words = suite.words.read_text(encoding="utf-8").splitlines()
    assert words[:2] == ["-m", "pytest"]
    assert [f"--rootdir={verify.CHECKOUT}", "--candidate=/my k.py", "--target=cpu"] == [
        word for word in words if word.startswith(("--rootdir", "--candidate", "--target"))
    ]
    assert words[words.index("correctness") + 1] == f"{verify.CHECKOUT}/properties"
    assert "-pxdist.plugin" not in words
    variables = suite.variables.read_text(encoding="utf-8").splitlines()
    assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1" in variables
    assert not any(line.startswith("KERNELPROOF_TARGET") for line in variables)


FINDINGS = """
import pytest
def test_finding():
    pytest.fail("wrong-value: off by the factor 8", pytrace=False)
def test_not_examined():
    pytest.skip("not-examined")
def test_broken(no_such_fixture):
    pass
"""


def test_our_summary_says_it_all_so_pytests_lists_what_broke_alone(suite: Suite, tmp_path: Path) -> None:
    suite.prepare(fakes.report(fakes.candidate()))
    verify.judge(suite.made, Options())
    chosen = [word for word in suite.words.read_text(encoding="utf-8").splitlines() if word.startswith("-r")]
    (tmp_path / "test_it.py").write_text(FINDINGS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-ra", *chosen, "-pno:cacheprovider", "-c/dev/null", "--rootdir=.", "."]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout.count("wrong-value: off by the factor 8") == 1, "once, with what it found, and not once more"
    _, _, listed = ended.stdout.partition("short test summary info")
    assert "ERROR test_it.py::test_broken" in listed
    assert not any(word in listed for word in ("FAILED", "SKIPPED"))


def test_several_processes_bring_their_plugin(suite: Suite) -> None:
    suite.prepare(fakes.report(fakes.candidate()))
    verify.judge(suite.made, Options(workers="2"))
    words = suite.words.read_text(encoding="utf-8").splitlines()
    assert {"-pxdist.plugin", "--numprocesses=2"} <= set(words)


@pytest.fixture
def two_targets(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A machine with a GPU and four cores; the environment's Python, and so pytest-xdist, is that of this test."""
    monkeypatch.setattr(facts, "has_gpu", lambda: True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    fakes.make_program(suite.made.python, f'exec "{sys.executable}" "$@"')
    return suite


def test_two_targets_are_judged_side_by_side(two_targets: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(command: list[str], _: dict[str, str]) -> int:
        asked.extend(command)
        return 0

    monkeypatch.setattr(verify, "run", run)
    verify.judge(two_targets.made, Options(passed=("--target=all", "--require-gpu", "-k", "shapes")))
    assert {"-pxdist.plugin", *verify.SIDE_BY_SIDE} <= set(asked)


@pytest.mark.parametrize(
    "options",
    [
        Options(workers="0"),
        Options(candidates=(Path("/k.py"),)),
        Options(passed=("--target=cuda",)),
        Options(passed=("--target=cpu",)),
        Options(passed=("--case=shapes:shape=2x3,dtype=float32,values=ones,seed=0",)),
    ],
)
def test_one_target_is_judged_in_one_process(two_targets: Suite, options: Options) -> None:
    assert verify.side_by_side(two_targets.made, Options())
    assert not verify.side_by_side(two_targets.made, options)


@pytest.mark.parametrize("lacks", ["a GPU", "cores", "xdist"])
def test_side_by_side_takes_a_gpu_cores_and_xdist(
    two_targets: Suite, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacks == "a GPU":
        monkeypatch.setattr(facts, "has_gpu", lambda: False)
    elif lacks == "cores":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    else:
        fakes.make_program(two_targets.made.python, "exit 1")
    assert not verify.side_by_side(two_targets.made, Options())


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 5, 139])
def test_the_code_is_the_reports_whatever_pytests_own_was(suite: Suite, status: int) -> None:
    suite.prepare(fakes.report(fakes.candidate()), status)
    assert verify.judge(suite.made, Options()).code == OK
    suite.prepare(fakes.report(fakes.candidate("rejected"), failed=1), status)
    assert verify.judge(suite.made, Options()).code == REJECTED


@pytest.mark.parametrize("status", [0, 1, 5])
def test_a_run_without_a_report_is_an_internal_error(suite: Suite, status: int) -> None:
    suite.prepare(None, status)
    outcome = verify.judge(suite.made, Options())
    assert outcome.code == INTERNAL
    assert f"status {status}" in outcome.lines[0]


@pytest.mark.parametrize("text", ["", '{"schema": 1', '{"schema": 7}'])
def test_a_report_that_cannot_be_read_is_an_internal_error(suite: Suite, text: str) -> None:
    suite.prepare(text)
    assert verify.judge(suite.made, Options()).code == INTERNAL


def test_the_report_is_copied_to_where_the_user_wants_it(suite: Suite, tmp_path: Path) -> None:
    document = fakes.report(fakes.candidate("rejected"))
    suite.prepare(document, 1)
    verify.judge(suite.made, Options(report=tmp_path / "wanted.json"))
    assert json.loads((tmp_path / "wanted.json").read_text(encoding="utf-8")) == document


def test_an_older_report_is_gone_before_anything_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> environment.Environment:
        raise Stop(UNAVAILABLE, "no environment")

    monkeypatch.setattr(environment, "ensure", fails)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("accepted", encoding="utf-8")
    (tmp_path / "link.json").symlink_to(elsewhere)
    (tmp_path / "junit.xml").write_text("passed", encoding="utf-8")
    with pytest.raises(Stop):
        verify.main([f"--report-json={tmp_path / 'link.json'}", f"--junitxml={tmp_path / 'junit.xml'}"])
    assert not elsewhere.exists()
    assert not (tmp_path / "junit.xml").exists()
    assert (tmp_path / "link.json").is_symlink(), "it is written through again"


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    verify.begin_anew(tmp_path / "pipe", tmp_path / "nowhere", None)
    assert (tmp_path / "pipe").exists()


@pytest.mark.skipif(not fakes.FULL.exists(), reason=fakes.NO_FULL)
@pytest.mark.parametrize(("verdict", "code"), [("accepted", INTERNAL), ("rejected", REJECTED)])
def test_nothing_is_accepted_without_the_report_that_was_asked_for(suite: Suite, verdict: str, code: int) -> None:
    suite.prepare(fakes.report(fakes.candidate(verdict)))
    assert verify.judge(suite.made, Options(report=fakes.FULL)).code == code


def test_a_replay_names_the_python_of_a_venv_whose_torch_is_used(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    assert verify.named_python(suite.made) is None
    inherits = environment.Environment(suite.folder, suite.folder, (), "2.11.0", True, ())
    monkeypatch.setattr(sys, "prefix", "/venv")
    assert verify.named_python(inherits) == sys.executable
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert verify.named_python(inherits) is None


def started(folder: Path, suite: str) -> "subprocess.Popen[str]":
    """`ci/verify` as its wrapper starts it, on a suite that is this line of shell, once that has called `begin`."""
    fakes.make_program(folder / "bin" / "python", f"begin() {{ echo $$ > '{folder}/begun'; }}; {suite}")
    code = f"""
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
sys.path.insert(0, {str(fakes.CHECKOUT)!r})
from pathlib import Path
from ci import environment, verify
folder = Path({str(folder)!r})
made = environment.Environment(folder, folder, (), "2.11.0", False, ())
environment.ensure = lambda *_, **__: made
verify.TERMINATION_PATIENCE = 1
sys.argv[1:] = ["verify"]
runpy.run_path({str(fakes.CHECKOUT / "ci" / "start.py")!r}, run_name="__main__")
"""
    command = [sys.executable, "-c", code]
    running = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if (folder / "begun").exists():
            break
        time.sleep(0.05)
    return running


def test_the_suite_is_told_which_python_its_replays_name(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.prepare(fakes.report(fakes.candidate()))
    for given in ("/my env/bin/python", ""):
        monkeypatch.setenv("PYTHON", given)
        if not given:
            monkeypatch.delenv("PYTHON")
        monkeypatch.setenv(NAMED_PYTHON, "of a command around this one")
        verify.judge(suite.made, Options())
        variables = suite.variables.read_text(encoding="utf-8").splitlines()
        assert [each for each in variables if each.startswith(NAMED_PYTHON)] == [f"{NAMED_PYTHON}={given}"] * bool(
            given
        )


def test_an_interrupt_ends_the_suite_and_is_130(tmp_path: Path) -> None:
    running = started(tmp_path, "begin; exec sleep 30")
    begin = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    _, error = running.communicate(timeout=30)
    assert running.returncode == INTERRUPTED
    assert "interrupted" in error
    assert "Traceback" not in error
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize(
    ("told", "ends"), [("touch '{}/told'; exit", True), ("", False)], ids=["it ends by itself", "it does not"]
)
def test_sigterm_ends_the_suite_and_is_143(tmp_path: Path, told: str, ends: bool) -> None:
    running = started(tmp_path, f'trap "{told.format(tmp_path)}" TERM; begin; sleep 30 & wait; wait')
    begin = time.monotonic()
    running.terminate()
    running.wait(timeout=30)
    assert running.returncode == TERMINATED
    assert time.monotonic() - begin < 15
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "begun").read_text(encoding="utf-8")), 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)  # what the line of shell has started
    _, error = running.communicate(timeout=30)
    assert (tmp_path / "told").exists() is ends
    assert "ended by SIGTERM" in error
    assert "Traceback" not in error
