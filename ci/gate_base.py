"""Finds the commit that the gate compares with, and lays its files out beside the present ones.

Promise: standard library and git only. The checkout that is judged is not touched: the base's files lie in a git
worktree in the cache folder, which is gone when the block ends; what a killed run left there is removed by the next.
Whatever is wrong is a `NoBaseError` with one line: a gate without a base is not measured, and never passed.
"""

import contextlib
import difflib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Where pull requests usually go, in the order in which they are tried; `origin/HEAD` says which one a clone came from.
MAIN_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
# Seconds. The largest step is the checkout of one commit.
GIT_TIMEOUT: Final = 300


# What to do where git finds no base.
_NAME_ONE: Final = "name one with --against=FILE"


class NoBaseError(Exception):
    """There is no base; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Version:
    """One version of a file.

    Attributes:
        label: For people.
        commit: 40 digits, with "+" behind where files differ from the commit; "" where it is not known.
        path: The file.
    """

    label: str
    commit: str
    path: Path


class Repository:
    """The git repository that a file lies in."""

    def __init__(self, file: Path) -> None:
        """Find it.

        Raises:
            NoBaseError: There is none, or no git.
        """
        self.file = file.resolve()
        self._folder = self.file.parent
        try:
            self.root = Path(self.git("rev-parse", "--show-toplevel")).resolve()
        except NoBaseError as error:
            raise NoBaseError(f"{error}{'' if _NAME_ONE in str(error) else f'; {_NAME_ONE}'}") from None
        self.inside = self.file.relative_to(self.root)

    def git(self, *words: str) -> str:
        """What git prints.

        Raises:
            NoBaseError: It refuses.
        """
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *words],
                env=git_variables(os.environ),
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=GIT_TIMEOUT,
            )
        except FileNotFoundError:
            raise NoBaseError(f"there is no git to find a base with; {_NAME_ONE}") from None
        except subprocess.TimeoutExpired:
            raise NoBaseError(f"git {words[0]} did not end within {GIT_TIMEOUT} s") from None
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix("fatal: ")
            raise NoBaseError(f"git {' '.join(words[:4])}: {said}")
        return done.stdout.strip()

    def commit(self, name: str) -> str | None:
        """The commit that a name stands for; None where there is none."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except NoBaseError:
            return None

    def present(self) -> Version:
        """The file as it lies there."""
        head = self.commit("HEAD") or ""
        changed = bool(head) and self.changed()
        label = "the working tree" if changed or not head else f"HEAD ({head[:10]})"
        return Version(label, f"{head}+" if changed else head, self.file)

    def changed(self) -> bool:
        """Whether the file, or another of its folder, differs from HEAD."""
        return bool(self.git("status", "--porcelain", "--", str(self.file.parent)))

    def base(self, named: str | None) -> tuple[str, str]:
        """The label and commit to compare with.

        Without a name it is the merge base with the main branch: what the change would be merged into. Where that is
        HEAD itself, HEAD, if the working tree differs from it, else HEAD's parent: code is not compared with itself.

        Raises:
            NoBaseError: There is no such commit in this clone.
        """
        shallow = self._shallow()
        fetch = "git fetch --unshallow, or fetch-depth: 0 in a workflow" if shallow else "git fetch --all --tags"
        how = f"fetch it ({fetch}), or name another: --base=REF"
        if named is not None:
            found = self.commit(named)
            if found is None:
                clone = f"this clone{' (it is shallow)' if shallow else ''}"
                raise NoBaseError(f"--base={named}: {clone} has no such commit{self._alike(named)}; {how}")
            return f"{named} ({found[:10]})", found
        head = self.commit("HEAD")
        if head is None:
            raise NoBaseError("this repository has no commit yet; name a file to compare with: --against=FILE")
        for branch in MAIN_BRANCHES:
            if self.commit(branch) is None:
                continue
            try:
                found = self.git("merge-base", "HEAD", branch)
            except NoBaseError:
                raise NoBaseError(f"this clone does not reach the merge base with {branch}; {how}") from None
            if found != head:
                return f"the merge base with {branch} ({found[:10]})", found
            break
        if self.changed():
            return f"HEAD ({head[:10]})", head
        parent = self.commit("HEAD^")
        if parent is None:
            raise NoBaseError(f"this clone does not reach the parent of HEAD; {how}")
        return f"HEAD's parent ({parent[:10]})", parent

    @contextlib.contextmanager
    def laid_out(self, label: str, commit: str, cache: Path) -> Iterator[Version]:
        """The file's version of this commit, with all that lies around it, until the block ends.

        Args:
            label: For people.
            commit: Which.
            cache: The folder for all that may be deleted and made again.

        Raises:
            NoBaseError: It cannot be laid out, or the commit has no such file.
        """
        bases = cache / "bases"
        folder = bases / f"{commit[:12]}-{os.getpid()}"
        try:
            bases.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoBaseError(f"{bases}: {error.strerror}; set KERNELPROOF_CACHE to a folder to write in") from error
        sweep(bases)
        self.git("worktree", "prune")
        try:
            # The hooks of the repository are for people's own checkouts.
            self.git(
                "-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--detach", "--force", str(folder), commit
            )
            path = folder / self.inside
            if not path.is_file():
                raise NoBaseError(f"{label} has no file {self.inside}; name another: --base=REF, or --against=FILE")
            yield Version(label, commit, path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(NoBaseError):
                self.git("worktree", "prune")

    def _alike(self, name: str) -> str:
        """The branches and tags whose names are most like this one, in words; without such, the main branches.

        Of a commit's own digits there is nothing to say.
        """
        if re.fullmatch("[0-9a-f]{7,40}", name):
            return ""
        listed = self.git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
        refs = listed.splitlines()
        near = difflib.get_close_matches(name, refs, 3)
        there = [branch for branch in MAIN_BRANCHES if branch in refs]
        if near:
            return f" (did you mean {' or '.join(near)}?)"
        return f" (there is {', '.join(there)})" if there else ""

    def _shallow(self) -> bool:
        try:
            return self.git("rev-parse", "--is-shallow-repository") == "true"
        except NoBaseError:
            return False


def git_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables less those that a hook of git sets, and without questions to a person."""
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    kept |= {name: value for name, value in variables.items() if name.startswith("GIT_CONFIG")}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def sweep(bases: Path) -> None:
    """Remove what runs left that are no more; each folder is named after the process that made it."""
    for folder in bases.iterdir():
        number = folder.name.rpartition("-")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)
