"""The base of a gate: which commit it is, in repositories made for the purpose, and that nothing of it stays behind."""

import os
import subprocess
from pathlib import Path

import pytest

from ci import gate_base
from ci.gate_base import NoBaseError, Repository

SETTINGS = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *SETTINGS, *words]
    done = subprocess.run(command, env=gate_base.git_variables(os.environ), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    """Write the kernel anew and commit it; returns the commit."""
    (folder / "mine").mkdir(exist_ok=True)
    (folder / "mine" / "kernel.py").write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository under a path with a blank, with two commits on its main branch."""
    folder = tmp_path / "a repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    commit(folder, "second")
    return folder


def of(folder: Path) -> Repository:
    return Repository(folder / "mine" / "kernel.py")


def test_on_a_branch_it_is_the_merge_base_with_main(repository: Path) -> None:
    fork = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "faster")
    commit(repository, "third")
    commit(repository, "fourth")
    git(repository, "checkout", "-q", "main")
    commit(repository, "main goes on")
    git(repository, "checkout", "-q", "faster")
    assert of(repository).base(None) == (f"the merge base with main ({fork[:10]})", fork)


def test_on_main_it_is_the_parent_or_head_where_the_kernel_has_changes(repository: Path) -> None:
    head, parent = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD^")
    assert of(repository).base(None) == (f"HEAD's parent ({parent[:10]})", parent)
    assert of(repository).present().commit == head
    (repository / "mine" / "kernel.py").write_text("changed", encoding="utf-8")
    assert of(repository).base(None) == (f"HEAD ({head[:10]})", head)
    assert (of(repository).present().label, of(repository).present().commit) == ("the working tree", f"{head}+")


def test_the_files_of_the_base_lie_beside_and_are_gone_afterwards(repository: Path, tmp_path: Path) -> None:
    cache, found = tmp_path / "the cache", of(repository)
    first = git(repository, "rev-parse", "HEAD^")
    with found.laid_out("first", first, cache) as base:
        assert base.path.read_text(encoding="utf-8") == "first"
        assert base.path.name == "kernel.py"
        assert (repository / "mine" / "kernel.py").read_text(encoding="utf-8") == "second"
    assert list((cache / "bases").iterdir()) == []
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_what_a_killed_run_left_is_removed_by_the_next(repository: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    stale, living = tmp_path / "bases" / f"abc-{ended.pid}", tmp_path / "bases" / f"abc-{os.getppid()}"
    stale.mkdir(parents=True)
    living.mkdir()
    with of(repository).laid_out("HEAD", git(repository, "rev-parse", "HEAD"), tmp_path):
        assert not stale.exists()
        assert living.exists(), "another run is at work there"


def test_hooks_of_the_repository_are_not_run(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    hook.chmod(0o755)
    with of(repository).laid_out("HEAD", git(repository, "rev-parse", "HEAD"), tmp_path / "cache") as base:
        assert base.path.is_file()


def test_a_shallow_clone_without_the_commit_says_how_to_get_it(repository: Path, tmp_path: Path) -> None:
    first = git(repository, "rev-parse", "HEAD^")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    clone = of(tmp_path / "shallow")
    with pytest.raises(NoBaseError, match=r"this clone \(it is shallow\) has no such commit; fetch it \(git fetch"):
        clone.base(first)
    with pytest.raises(NoBaseError, match="does not reach the parent of HEAD; fetch it"):
        clone.base(None)


def test_an_unknown_name_is_said_in_words_and_taken_for_no_option(repository: Path) -> None:
    for name in ("nowhere", "--upload-pack=x", "HEAD~99"):
        with pytest.raises(
            NoBaseError, match=rf"--base={name}: this clone has no such commit \(there is main\); fetch"
        ):
            of(repository).base(name)


def test_of_a_mistyped_name_the_nearest_are_told(repository: Path) -> None:
    git(repository, "tag", "v1.2")
    git(repository, "branch", "feature/tiles")
    for name, near in (("mian", "main"), ("v1.3", "v1.2"), ("feature/tils", "feature/tiles")):
        with pytest.raises(NoBaseError, match=rf"did you mean {near}\?\); fetch it \(git fetch --all --tags\)"):
            of(repository).base(name)


def test_a_base_without_the_file_is_none(repository: Path, tmp_path: Path) -> None:
    (repository / "mine" / "new.py").write_text("new", encoding="utf-8")
    found = Repository(repository / "mine" / "new.py")
    with (
        pytest.raises(NoBaseError, match=r"HEAD has no file mine/new.py; name another"),
        found.laid_out("HEAD", git(repository, "rev-parse", "HEAD"), tmp_path / "cache"),
    ):
        pass
    assert list((tmp_path / "cache" / "bases").iterdir()) == []


def test_outside_of_a_repository_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("", encoding="utf-8")
    with pytest.raises(NoBaseError, match=r"not a git repository.*; name one with --against=FILE$"):
        Repository(tmp_path / "kernel.py")


def test_without_git_a_file_can_be_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoBaseError, match=r"there is no git to find a base with; name one with --against=FILE$"):
        of(repository)


def test_variables_of_a_hook_do_not_lead_astray() -> None:
    found = gate_base.git_variables({"GIT_DIR": "/elsewhere", "GIT_CONFIG_COUNT": "0", "PATH": "/bin"})
    assert found == {"GIT_CONFIG_COUNT": "0", "PATH": "/bin", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
