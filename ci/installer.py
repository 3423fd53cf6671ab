"""Runs pip for one environment, and reads what pip says.

Promise: the user's own settings decide where packages come from (pip's configuration files and PIP_ variables,
uv's variables where pip's are unset); nothing here names a source. Resolving downloads no large file: a dry run
reads metadata only, and the operating system ends it where it would write more than `LARGEST_RESOLVED_FILE`.
"""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.exits import UNAVAILABLE, Stop

# Seconds. A CUDA build of torch is 3 GB: 20 minutes at 2.5 MB/s, doubled.
INSTALL_TIMEOUT = 2400
# Seconds. A resolution of torch with all it needs took 4 to 27 s here.
RESOLVE_TIMEOUT = 180
# Bytes. CPU builds of torch are wheels of up to 250 MB, CUDA builds begin at 500 MB. A source that offers neither
# metadata files nor range requests makes a dry run fetch whole wheels; this stops it at the first large one. (With
# range requests pip reserves a file of the wheel's full size and stops as early.)
LARGEST_RESOLVED_FILE = 400 * 10**6
# Distribution names that only a build of torch for an accelerator brings on Linux.
ACCELERATOR = re.compile(r"^(nvidia|cuda|pytorch-triton|triton|rocm|intel-sycl|onemkl-sycl)([-_.]|$)", re.IGNORECASE)
# Settings that send packages elsewhere than into the environment.
MISDIRECTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_REPORT")
# uv's variables and pip's of the same meaning; a later one is taken where an earlier one is unset.
UV_AND_PIP = (
    ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
    ("UV_INDEX_URL", "PIP_INDEX_URL"),
    ("UV_INDEX", "PIP_EXTRA_INDEX_URL"),
    ("UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    ("UV_FIND_LINKS", "PIP_FIND_LINKS"),
    ("UV_CONSTRAINT", "PIP_CONSTRAINT"),
)


def pip_variables(variables: Mapping[str, str], offline: bool) -> dict[str, str]:
    """The environment variables for pip: the user's, less those that would misdirect it."""
    result = {name: value for name, value in variables.items() if name not in (*MISDIRECTING, "PYTHONHOME")}
    for uv_name, pip_name in UV_AND_PIP:
        if variables.get(uv_name) and pip_name not in result:
            # uv allows NAME=URL; pip takes the URL alone.
            words = (
                variables[uv_name].replace(",", " ").split()
                if pip_name == "PIP_FIND_LINKS"
                else variables[uv_name].split()
            )
            result[pip_name] = " ".join(re.sub(r"^[\w-]+=(?=\w+:)", "", word) for word in words)
    result |= {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}
    if offline or variables.get("UV_OFFLINE", "").lower() in ("1", "true"):
        result["PIP_NO_INDEX"] = "1"
    return result


@dataclass(frozen=True)
class Installed:
    """A distribution as pip's report names it."""

    name: str
    version: str


def read_report(text: str) -> tuple[Installed, ...]:
    """What an installation report of pip (`--report`, version 1) would install."""
    document = json.loads(text)
    return tuple(Installed(item["metadata"]["name"], item["metadata"]["version"]) for item in document["install"])


def accelerator_packages(resolved: Sequence[Installed]) -> tuple[str, ...]:
    """Names of what a build for an accelerator would bring; empty for a CPU build.

    torch's own version label counts too: "+cu130" and "+rocm6.4" are such builds, "+cpu" and none are not.
    """
    found = [item.name for item in resolved if ACCELERATOR.match(item.name)]
    found += [
        f"torch {item.version}"
        for item in resolved
        if item.name == "torch" and re.search(r"\+(cu|rocm|xpu)", item.version)
    ]
    return tuple(found)


def versions_on_offer(text: str) -> tuple[str, ...]:
    """The versions that `pip index versions` printed, newest first."""
    found = re.search(r"^Available versions: (.+)$", text, re.MULTILINE)
    return tuple(version.strip() for version in found.group(1).split(",")) if found else ()


def explain(output: str) -> str:
    """Why pip failed, in a few words, read off its output."""
    if "No space left on device" in output or "Errno 28" in output:
        return "the disk is full"
    if "File too large" in output or "Errno 27" in output:
        return f"brings a file of more than {LARGEST_RESOLVED_FILE // 10**6} MB, as CUDA builds do"
    missing = re.findall(r"No matching distribution found for ([^\n(]+)", output)
    unreachable = re.search(
        r"Failed to establish a new connection|Name or service not known|ConnectTimeout|"
        r"Temporary failure in name resolution|Connection refused|ProxyError",
        output,
    )
    if unreachable:
        return f"no package source can be reached{f' (needed: {missing[-1].strip()})' if missing else ''}"
    if missing:
        return f"no source on offer has {missing[-1].strip()}"
    # ResolutionImpossible is a pointer to pip's documentation; the line before it says what conflicts.
    errors = re.findall(r"^(?:ERROR|error): (?!ResolutionImpossible)(.+)$", output, re.MULTILINE)
    return errors[-1].strip() if errors else "pip gave no reason"


def _end(child: subprocess.Popen[str]) -> None:
    """End a program and what it has started: pip for another Python is a second process, which does the work."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Pip:
    """pip, bound to one environment.

    Attributes:
        command: What starts it, like (".../bin/python", "-m", "pip").
        variables: Its environment variables, of `pip_variables`.
        log: Where its output is appended.
        descriptors: File descriptors that it inherits: the lock, so that a pip that outlives us keeps it held.
    """

    command: tuple[str, ...]
    variables: Mapping[str, str]
    log: Path
    descriptors: tuple[int, ...] = ()

    def run(self, arguments: Sequence[str], timeout: float, largest_file: int | None = None) -> tuple[int, str]:
        """Run pip; returns its exit status and its output, stdout and stderr together. 124 is a timeout."""

        def bound_file_size() -> None:
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        command = [*self.command, *arguments]
        with subprocess.Popen(
            command, env=dict(self.variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            pass_fds=self.descriptors, preexec_fn=bound_file_size,
        ) as child:  # fmt: skip
            try:
                output, _ = child.communicate(timeout=timeout)
                status = child.returncode
            except subprocess.TimeoutExpired:
                _end(child)
                output, _ = child.communicate()
                status, output = 124, f"{output}\nERROR: stopped after {timeout:.0f} s\n"
            except BaseException:
                _end(child)
                raise
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n{output}\n[exit status {status}]\n")
        return status, output

    def resolve(
        self, requirements: Sequence[str], constraints: Path | None, report: Path
    ) -> tuple[Installed, ...] | str:
        """What installing these would bring, nothing installed; or the reason why it cannot be said."""
        report.unlink(missing_ok=True)
        arguments = ["install", "--dry-run", "--quiet", "--use-feature=fast-deps", f"--report={report}"]
        status, output = self.run(
            [*arguments, *_constrained(constraints), *requirements], RESOLVE_TIMEOUT, LARGEST_RESOLVED_FILE
        )
        if status != 0:
            return explain(output)
        return read_report(report.read_text(encoding="utf-8"))

    def versions(self, name: str) -> tuple[str, ...]:
        """The versions of `name` on offer, newest first; empty where pip cannot tell."""
        status, output = self.run(["index", "versions", name], RESOLVE_TIMEOUT)
        return versions_on_offer(output) if status == 0 else ()

    def install(self, requirements: Sequence[str], constraints: Path | None) -> None:
        """Install what is missing of these; what is there and fits stays.

        Raises:
            Stop: pip failed; the line names the reason and the log.
        """
        status, output = self.run(["install", "--quiet", *_constrained(constraints), *requirements], INSTALL_TIMEOUT)
        if status != 0:
            raise Stop(
                UNAVAILABLE, f"setting up the environment failed: {explain(output)} (all of pip's output: {self.log})"
            )

    def lacks(self, requirements: Sequence[str], constraints: Path | None) -> tuple[str, ...]:
        """Those requirements that are neither installed nor to be had without an index."""
        return tuple(
            requirement
            for requirement in requirements
            if self.run(
                ["install", "--dry-run", "--quiet", "--no-index", *_constrained(constraints), requirement],
                RESOLVE_TIMEOUT,
            )[0]
        )


def _constrained(constraints: Path | None) -> list[str]:
    return [] if constraints is None else ["-c", str(constraints)]
