"""What can be said of the workflows without a linter: who may do what, what is pinned, and that our commands exist."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci import page, test
from ci.exits import Stop
from ci.fakes import CHECKOUT
from ci.gate_options import gate_parser
from ci.options import Parser, verify_parser
from ci.workflow_files import Node, read

FILES = sorted([*(CHECKOUT / ".github" / "workflows").glob("*.yml"), *(CHECKOUT / "ci" / "examples").glob("*.yml")])
PINNED = re.compile(r"^uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
COMMANDS: dict[str, Parser] = {
    "verify": verify_parser(),
    "gate": gate_parser(),
    "test": test.test_parser(),
    "page": page.parser(),
}
# A call of a command, in whatever folder it is, and the signs of the shell that end one.
CALLED = re.compile(r"(?:[\w./-]+/)?ci/[a-z]+\b(?![./])")
SIGNS = set("();<>|&")
# A pull request of a fork brings its own code: no job on a runner of ours takes it unasked.
OWN_ONLY = "github.event.pull_request.head.repo.full_name == github.repository"
# Minutes. Longer than the longest night, and shorter than GitHub's own limit of a hosted job.
LONGEST = 300


def problems(path: Path) -> list[str]:
    """What is wrong with a workflow, each in a line that begins with the rule's name."""
    document = read(path)
    found = [] if document["permissions"] == {} else ["permissions: the workflow's own are not empty"]
    lines = [line.strip().removeprefix("- ") for line in path.read_text(encoding="utf-8").splitlines()]
    found += [f"pin: {line}" for line in lines if line.startswith("uses:") and not PINNED.match(line)]
    said = [line.partition("#")[0] for line in lines]
    found += [f"secrets: {line}" for line in said if "pull_request_target" in line or "secrets." in line]
    for name, job in document["jobs"].items():
        found += [f"{problem} (job {name})" for problem in job_problems(document, job)]
    return found


def job_problems(document: Node, job: Node) -> Iterator[str]:
    """What is wrong with a job."""
    if job["permissions"] != {"contents": "read"}:
        yield f"permissions: {job['permissions']}"
    if not 0 < int(job.get("timeout-minutes", 0)) <= LONGEST:
        yield "timeout: none, or too long"
    checkouts = [step for step in job["steps"] if "actions/checkout@" in step.get("uses", "")]
    if not checkouts or any(step["with"].get("persist-credentials") != "false" for step in checkouts):
        yield "token: it stays in the checkout"
    texts = [step["run"] for step in job["steps"] if "run" in step]
    if any("merge-base" in text for text in texts) and checkouts[0]["with"].get("fetch-depth") != "0":
        yield "history: the merge base is not there"
    if any("${{" in text for text in texts):
        yield "injection: an expression is pasted into a shell"
    if "self-hosted" in job["runs-on"] and "pull_request" in document["on"]:
        if OWN_ONLY not in job.get("if", ""):
            yield "forks: a runner of our own takes any pull request"
        concurrency = document["concurrency"]
        if "pull_request.number" not in concurrency["group"] or concurrency["cancel-in-progress"] != "true":
            yield "concurrency: a pull request can have two runs"
    for words in calls(texts):
        yield from command_problems(words)
    if any("ci/verify" in text for text in texts):
        report, keep = job["steps"][-2:]
        always = report.get("if") == keep.get("if") == "${{ !cancelled() }}"
        if not always or "ci/page" not in report.get("run", "") or "upload-artifact@" not in keep.get("uses", ""):
            yield "reports: not made and kept whatever became of the steps before"


def calls(texts: list[str]) -> list[list[str]]:
    """Every call of a command of ours, in words, wherever it stands in a line."""
    found = []
    for line in (line for text in texts for line in text.replace("\\\n", " ").splitlines() if CALLED.search(line)):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        for start in (at for at, word in enumerate(words) if CALLED.fullmatch(word)):
            end = next((at for at in range(start, len(words)) if set(words[at]) <= SIGNS), len(words))
            found.append(words[start:end])
    return found


def command_problems(words: list[str]) -> Iterator[str]:
    """What is wrong with a call of a command of ours."""
    command = words[0].rpartition("/")[2]
    if command not in COMMANDS or not (CHECKOUT / "ci" / command).is_file():
        yield f"command: there is no {words[0]}"
        return
    try:
        _, unknown = COMMANDS[command].parse_known_args(words[1:])
    except Stop as stop:
        yield f"command: {words[0]}: {stop.line}"
        return
    yield from (f"command: {words[0]} takes no {word}" for word in unknown)
    wanted = [word.partition("=")[2] for word in words if word.startswith("--only=")]
    yield from (f"command: ci/test has no step {name}" for name in wanted if name not in test.STEPS)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_workflow_keeps_the_rules(path: Path) -> None:
    assert problems(path) == []


def test_one_action_has_one_version() -> None:
    lines = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]
    used = {line.partition("uses: ")[2] for line in lines if "uses: " in line}
    assert used
    assert len({line.split("@")[0] for line in used}) == len(used)


def test_what_each_workflow_is_for_stands_in_it() -> None:
    words: dict[str, set[str]] = {}
    for path in FILES:
        texts = [step["run"] for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step]
        words[path.stem] = {word for call in calls(texts) for word in call}
    assert {"--require-gpu", "--profile=kp-nightly", "--only=mutants", "--only=sanitizers"} <= words["nightly"]
    assert {"ci/verify", "--require-gpu", "ci/gate", "--base=merge-base"} <= words["gpu"]
    assert {"--only=lint", "--only=tests", "ci/verify"} <= words["cpu"]
    assert {"kernelproof/ci/gate", "--candidate=mine/$KERNEL", "--base=merge-base"} <= words["guard-my-kernel"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(
    ("pinned", "kernel", "complaint"),
    [
        ("HEAD", "k/kernel.py", ""),
        ("", "k/kernel.py", "KERNELPROOF_COMMIT is to be"),
        ("HEAD", "", "KERNELPROOF_KERNEL is to be"),
        ("HEAD", "k", "not 'k'"),
        ("HEAD", "gone.py", "not 'gone.py'"),
    ],
)
def test_the_guard_judges_nothing_where_a_variable_is_not_set(
    pinned: str, kernel: str, complaint: str, tmp_path: Path
) -> None:
    def git(*words: str) -> str:
        named = ["git", "-C", str(tmp_path / "kernelproof"), "-c", "user.name=a", "-c", "user.email=a@b"]
        command = [*named, "-c", "commit.gpgsign=false", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    for place in ("kernelproof", "mine/k"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "mine" / "k" / "kernel.py").touch()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    (path,) = (each for each in FILES if each.stem == "guard-my-kernel")
    (text,) = (step["run"] for step in read(path)["jobs"]["guard"]["steps"] if "PINNED" in step.get("env", {}))
    given = {**os.environ, "PINNED": git("rev-parse", pinned) if pinned else "", "KERNEL": kernel}
    done = subprocess.run(
        ["bash", "-e", "-c", text], cwd=tmp_path, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == (64 if complaint else 0), done.stderr
    assert complaint in done.stderr
    assert (tmp_path / "reports").is_dir() is not bool(complaint)


@pytest.mark.parametrize(
    ("rule", "name", "old", "new"),
    [
        ("permissions", "gpu", "permissions: {}", "permissions:\n  contents: write"),
        ("permissions", "gpu", "contents: read", "contents: write"),
        ("pin", "cpu", r"checkout@[0-9a-f]{40} # v6\.\d\.\d", "checkout@v6"),
        ("pin", "cpu", r"(checkout@[0-9a-f]{40}) # v[\d.]+", r"\1"),
        ("secrets", "gpu", "\n  pull_request:", "\n  pull_request_target:"),
        ("secrets", "cpu", r"github\.token", "secrets.TOKEN"),
        ("timeout", "nightly", "timeout-minutes: 240\n", "timeout-minutes: 1440\n"),
        ("token", "gpu", "persist-credentials: false", "persist-credentials: true"),
        ("history", "gpu", "fetch-depth: 0", "fetch-depth: 1"),
        ("injection", "gpu", r'"\$AGAINST"', "${{ github.head_ref }}"),
        ("forks", "gpu", r"    if: [^\n]*full_name[^\n]*\n", ""),
        ("concurrency", "gpu", "cancel-in-progress: true", "cancel-in-progress: false"),
        ("command", "cpu", "ci/verify --rep", "ci/verfy --rep"),
        ("command", "cpu", "--report-json=", "--report="),
        ("command", "nightly", "--only=mutants", "--only=mutant"),
        ("command", "gpu", "--base=merge-base", "--bass=merge-base"),
        ("command", "gpu", "ci/gate --base", "timeout 600 ci/gate --numprocesses=2 --base"),
        ("command", "gpu", r"ci/gate --base=merge-base", r"true \&\& ci/gate \\\n            --target=tpu"),
        ("command", "gpu", "--base=merge-base", "--base=merge-base --against=kernel.py"),
        ("command", "gpu", "--base=merge-base", "merge-base"),
        ("command", "guard-my-kernel", "--base=merge-base", "--minimum=3%"),
        ("reports", "gpu", r"name: Report\n        if: [^\n]*\n", "name: Report\n"),
    ],
)
def test_every_rule_can_be_broken(rule: str, name: str, old: str, new: str, tmp_path: Path) -> None:
    (path,) = (each for each in FILES if each.stem == name)
    text = path.read_text(encoding="utf-8")
    broken, count = re.subn(old, new, text, count=1)
    assert count == 1
    path = tmp_path / "broken.yml"
    path.write_text(broken, encoding="utf-8")
    assert [problem for problem in problems(path) if problem.startswith(f"{rule}:")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", "twice"),
        ("a\n", "neither a key nor an item"),
        ("a: {b: c}\n", "not of the part of YAML"),
        ("a: 1\n    b: 2\n", "not expected here"),
        ("- a\n", "not expected here"),
    ],
)
def test_yaml_that_is_not_known_is_an_error(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "some.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        read(path)


def test_the_yaml_of_a_workflow_is_read_as_it_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "some.yml"
    text = (
        '---\n# head\non:\n  push:\n    branches: [main, "x"]\nsteps:\n  - name: a # b\n    run: |\n      echo "#"\n\n'
    )
    path.write_text(text + '      exit\n  - uses: "c"\n    with:\n      - d\nlast: x "y"\n', encoding="utf-8")
    assert read(path) == {
        "on": {"push": {"branches": ["main", "x"]}},
        "steps": [{"name": "a", "run": 'echo "#"\n\nexit\n'}, {"uses": "c", "with": ["d"]}],
        "last": 'x "y"',
    }


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("memcheck of l1_norm on cuda", 1),
        ("memcheck of l1_norm on cuda, shape=3x5", 1),
        ("memcheck of l1_norm on cpu", 0),
        ("huge of l1_norm on cuda", 0),
    ],
)
def test_a_night_without_compute_sanitizer_fails(what: str, code: int, tmp_path: Path) -> None:
    job = read(CHECKOUT / ".github" / "workflows" / "nightly.yml")["jobs"]["everything"]
    (text,) = (step["run"] for step in job["steps"] if step.get("name") == "Did compute-sanitizer see it?")
    (tmp_path / "reports").mkdir()
    document = {"not_run": [{"what": what, "why": "needs compute-sanitizer"}]}
    (tmp_path / "reports" / "verify.json").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        check=False,
    )
    assert done.returncode == code
    assert (b"needs compute-sanitizer" in done.stderr) == (code == 1)
