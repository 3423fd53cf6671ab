"""Makes and keeps the environment that the commands run in, in the user's cache folder.

Promise: the caller's own environment is never changed. Where the caller has torch >= 2.9, ours is an overlay: a
venv that imports the caller's packages after its own and holds only what is missing or too old there. A set-up
that was killed is never taken for complete: the marker file is written last, and whatever has none is made anew.
Two set-ups at once take turns. An environment that is there is found again in well under a second.
"""

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci import facts, lock
from ci.exits import UNAVAILABLE, Stop
from ci.installer import Installed, Pip, accelerator_packages, pip_variables
from ci.plan import Plan, cpu_torch_candidates, distribution, make_plan

# Written last into a complete environment; says what is in it.
MARKER = "kernelproof.json"
# Read by `site` when the overlay's interpreter starts.
INHERITANCE = "_kernelproof_caller.pth"
# Seconds to wait for another set-up: as long as the longest one may take (a CUDA build over a slow line).
LOCK_WAIT = 2700
# Seconds. A first import of torch from a cold disk took up to 40 s here.
IMPORT_TIMEOUT = 300

Say = Callable[[str], None]


@dataclass(frozen=True)
class Environment:
    """A complete environment.

    Attributes:
        folder: Where it lies.
        cache: The cache folder, for environments and builds.
        scripts: Folders with the programs of its packages, its own first.
        torch: The version of torch in it.
        inherits: That torch is the caller's own.
        missing: Requirements of the tools that could not be installed; whoever needs one says so.
    """

    folder: Path
    cache: Path
    scripts: tuple[str, ...]
    torch: str
    inherits: bool
    missing: tuple[str, ...]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The environment variables for programs that run in it, made from the caller's.

        ninja may lie with the caller's programs, hence both folders on PATH. PYTEST_ADDOPTS could weaken a verdict.
        """
        result = {name: value for name, value in variables.items() if name not in ("PYTHONHOME", "PYTEST_ADDOPTS")}
        result["PATH"] = os.pathsep.join([*self.scripts, variables.get("PATH", os.defpath)])
        result["VIRTUAL_ENV"] = str(self.folder)
        result["KERNELPROOF_CACHE"] = str(self.cache)
        return result


@dataclass(frozen=True)
class Needs:
    """What pyproject.toml asks for: what everything needs, and what the project's own tests need besides."""

    dependencies: tuple[str, ...]
    tools: tuple[str, ...]


def read_needs(checkout: Path) -> Needs:
    """Read the requirements from the checkout's pyproject.toml."""
    with (checkout / "pyproject.toml").open("rb") as file:
        document = tomllib.load(file)
    return Needs(tuple(document["project"]["dependencies"]), tuple(document["dependency-groups"]["dev"]))


def ensure(checkout: Path, cache: Path, *, with_tools: bool, offline: bool, say: Say) -> Environment:
    """Find the environment for the running interpreter, or make it.

    Args:
        checkout: The project's folder.
        cache: The cache folder.
        with_tools: The project's own tests are to be run: their tools are wanted as well.
        offline: Download nothing.
        say: Told in a line what takes long.

    Raises:
        Stop: It cannot be made; the line says why and how to go on.
    """
    caller = facts.describe_caller(checkout)
    needs = read_needs(checkout)
    wanted = needs.tools if with_tools else ()
    own = complete(Path(caller.prefix), cache, wanted)
    if own is not None:
        return own
    plan = make_plan(caller, caller.torch is None and facts.has_gpu(), sys.platform, needs.dependencies)
    folder = cache / "environments" / plan.key
    found = complete(folder, cache, wanted)
    if found is not None:
        return found
    refuse_blank(folder, plan)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock.held(folder.parent / f"{plan.key}.lock", LOCK_WAIT, say) as descriptor:
            found = complete(folder, cache, wanted)
            if found is not None:
                return found
            setup = Setup(folder, caller, plan, offline, (descriptor,), say)
            if complete(folder, cache, ()) is None:
                setup.make()
            if wanted:
                setup.add_tools(wanted)
    except OSError as error:
        raise Stop(UNAVAILABLE, explain_os_error(error, cache)) from error
    made = complete(folder, cache, wanted)
    if made is None:
        raise Stop(UNAVAILABLE, f"{folder} was removed while it was being used; try again")
    return made


def complete(folder: Path, cache: Path, tools: Sequence[str]) -> Environment | None:
    """The environment in this folder, if it is complete and these tools are in it or known not to be had."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not (folder / "bin" / "python").exists() or not set(tools) <= {*marker["tools"], *marker["missing"]}:
        return None
    return Environment(
        folder=folder,
        cache=cache,
        scripts=tuple(marker["scripts"]),
        torch=marker["torch"],
        inherits=marker["inherits"],
        missing=tuple(marker["missing"]),
    )


def refuse_blank(folder: Path, plan: Plan) -> None:
    """Stop where torch would lie under a path with a blank: its headers and libraries are then not found."""
    if not plan.inherits and len(str(folder).split()) > 1:
        raise Stop(
            UNAVAILABLE,
            f"extensions cannot be linked against a torch under a path with blanks ({folder}): "
            "set KERNELPROOF_CACHE to a folder without",
        )


def explain_os_error(error: OSError, cache: Path) -> str:
    """One line for a cache folder that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of the cache folder {cache} is full: make room, or set KERNELPROOF_CACHE to another disk"
    place = error.filename or cache
    return f"{place}: {error.strerror}; set KERNELPROOF_CACHE to a folder to write and to run programs in"


class Setup:
    """One set-up, under the lock.

    Args:
        folder: Where the environment goes; an incomplete one there is removed.
        caller: The calling interpreter.
        plan: How to make it.
        offline: Download nothing.
        descriptors: Passed on to pip: the lock.
        say: Told in a line what takes long.
    """

    def __init__(
        self, folder: Path, caller: facts.Caller, plan: Plan, offline: bool, descriptors: tuple[int, ...], say: Say
    ) -> None:
        self.folder = folder
        self.caller = caller
        self.plan = plan
        self.offline = offline
        self.descriptors = descriptors
        self.say = say
        self.python = folder / "bin" / "python"
        self.constraints = folder / "constraints.txt"

    def make(self) -> None:
        """Make the environment with what every command needs."""
        self.say(f"setting up the environment in {self.folder} (once; a minute or two)")
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            venv.EnvBuilder(symlinks=True, with_pip=False).create(self.folder)
            self._inherit()
            pip = self._pip()
            self._install_needed(pip)
            self._write_marker(torch=self._import_torch(), tools=(), missing=())
        except BaseException:
            # What is half made only takes up room; without its marker nobody would use it.
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.say("the environment is ready")

    def add_tools(self, tools: Sequence[str]) -> None:
        """Add the tools of the project's own tests; one that is not to be had is written down as missing."""
        marker = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
        self.say("adding what the project's own tests need")
        (self.folder / MARKER).unlink()
        pip = self._pip()
        missing: tuple[str, ...] = ()
        try:
            pip.install(tools, self._constraints())
        except Stop:
            missing = pip.lacks(tools, self._constraints())
            there = [tool for tool in tools if tool not in missing]
            if there:
                pip.install(there, self._constraints())
            self.say(
                f"{', '.join(missing)} could not be installed ({pip.log} says why): what needs them is left out; "
                f"remove {self.folder} to try again"
            )
        self._write_marker(
            torch=marker["torch"], tools=[tool for tool in tools if tool not in missing], missing=list(missing)
        )

    def _inherit(self) -> None:
        """Let the overlay import the caller's packages after its own, and read the caller's pip settings."""
        if not self.plan.inherits:
            return
        packages = Path(sysconfig.get_path("purelib", scheme="venv", vars={"base": str(self.folder)}))
        # addsitedir, unlike a plain line, also follows the .pth files there: editable installs of torch need it.
        calls = "; ".join(f"site.addsitedir({folder!r})" for folder in self.caller.site_folders)
        (packages / INHERITANCE).write_text(f"import site; {calls}\n", encoding="utf-8")
        settings = Path(self.caller.prefix) / "pip.conf"
        if settings.is_file():
            (self.folder / "pip.conf").symlink_to(settings)
        self.constraints.write_text("\n".join([*self.plan.constraints, ""]), encoding="utf-8")

    def _constraints(self) -> Path | None:
        return self.constraints if self.constraints.exists() else None

    def _pip(self) -> Pip:
        """A pip that installs into the environment."""
        return pip_for(self.folder, self.caller.executable, self.offline, self.descriptors)

    def _install_needed(self, pip: Pip) -> None:
        requirements = list(self.plan.requirements)
        try:
            if self.plan.find_cpu_torch:
                others = [each for each in requirements if distribution(each) != "torch"]
                requirements = [self._choose_cpu_torch(pip), *others]
                self.say(f"installing {requirements[0]} and what else is needed")
            pip.install(requirements, self._constraints())
        except Stop as stop:
            if not self.offline:
                raise
            lacking = ", ".join(pip.lacks(requirements, self._constraints()))
            raise Stop(
                UNAVAILABLE, f"{lacking or stop.line}: missing, and --offline downloads nothing; {how_to_bring()}"
            ) from stop

    def _choose_cpu_torch(self, pip: Pip) -> str:
        """The requirement for a CPU build of torch.

        Raises:
            Stop: Only CUDA builds are on offer, or none at all.
        """
        self.say("no GPU here: looking for a CPU build of torch")
        dependency = next(each for each in self.plan.requirements if distribution(each) == "torch")
        reasons: list[str] = []
        for candidate in cpu_torch_candidates(pip.versions("torch"), platform.machine(), dependency):
            resolved = pip.resolve([candidate, *self.plan.requirements], None, self.folder / "resolved.json")
            chosen, reason = judge_resolution(candidate, resolved)
            if chosen is not None:
                return chosen
            reasons.append(reason)
        raise Stop(
            UNAVAILABLE,
            f"no CPU build of torch >= 2.9 is on offer for Python {self.caller.version} "
            f"({'; '.join(dict.fromkeys(reasons))}): {how_to_bring()}",
        )

    def _import_torch(self) -> str:
        """Import torch in the new environment, as every command will; returns its version."""
        command = [str(self.python), "-c", "import torch; print(torch.__version__)"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=IMPORT_TIMEOUT
            )
        except subprocess.TimeoutExpired as expired:
            raise Stop(
                UNAVAILABLE, f"importing torch in {self.folder} took over {IMPORT_TIMEOUT} s; try again"
            ) from expired
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            whose = "the torch of the calling interpreter" if self.plan.inherits else "torch"
            raise Stop(
                UNAVAILABLE, f"{whose} cannot be imported ({last}): repair it, or name another Python: PYTHON=..."
            )
        return done.stdout.strip().splitlines()[-1]

    def _write_marker(self, torch: str, tools: Sequence[str], missing: Sequence[str]) -> None:
        scripts = [str(self.folder / "bin"), *([self.caller.scripts] if self.plan.inherits else [])]
        content = {
            "torch": torch,
            "inherits": self.plan.inherits,
            "scripts": scripts,
            "tools": list(tools),
            "missing": list(missing),
        }
        new = self.folder / f"{MARKER}.new"
        new.write_text(json.dumps(content, indent=1), encoding="utf-8")
        new.replace(self.folder / MARKER)


def judge_resolution(candidate: str, resolved: tuple[Installed, ...] | str) -> tuple[str | None, str]:
    """The exact requirement for torch that this resolution gives; None and the reason where it will not do."""
    if isinstance(resolved, str):
        return None, f"{candidate}: {resolved}"
    accelerators = accelerator_packages(resolved)
    if accelerators:
        return None, f"{candidate} would bring CUDA packages of several GB"
    versions = [item.version for item in resolved if item.name == "torch"]
    return (f"torch=={versions[0]}", "") if versions else (None, f"{candidate}: pip resolved no torch")


def how_to_bring() -> str:
    """How to go on where packages cannot be had."""
    return (
        "install what is missing into the Python that you call with (a CPU build of torch: pytorch.org, Get Started), "
        "or name one that has it: PYTHON=/path/to/python3"
    )


def pip_for(folder: Path, caller: str, offline: bool, descriptors: tuple[int, ...]) -> Pip:
    """A pip that installs into the venv in this folder: its own, the caller's, else the one that Python bundles.

    Args:
        folder: The venv's folder; pip's log goes beside it.
        caller: The program of the calling interpreter.
        offline: Download nothing.
        descriptors: Passed on to pip: the lock.

    Raises:
        Stop: There is none.
    """
    python = str(folder / "bin" / "python")
    own = (python, "-m", "pip")
    callers = (caller, "-m", "pip", "--python", python)
    command: tuple[str, ...] = own
    if not _succeeds([*own, "--version"]):
        if _succeeds([*callers, "--version"]):
            command = callers
        elif not _succeeds([python, "-m", "ensurepip"]):
            raise Stop(
                UNAVAILABLE,
                f"{caller} has neither ensurepip nor pip: install one of them "
                "(Debian and Ubuntu: python3-venv), or name another Python: PYTHON=/path/to/python3",
            )
    return Pip(command, pip_variables(os.environ, offline), folder.with_name(f"{folder.name}.log"), descriptors)


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
