"""Decides how an environment is made; pure functions from facts to a plan.

Promise: a torch that the caller has is kept as it is, whatever else is installed; without one, a machine
without a GPU never gets a CUDA build unasked. Nothing here touches the disk or the network.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ci.facts import Caller, torch_is_recent

# Raise it when environments made by older code must not be reused.
LAYOUT = 1
# CPU builds that were tried, by machine: asked for where no version on offer is labelled as a CPU build.
KNOWN_CPU_TORCH = {"x86_64": "2.13.0", "aarch64": "2.9.1"}
# Labelled versions to try, newest first: the newest may be withdrawn or lack a wheel for this Python.
LABELLED_TRIED = 3


@dataclass(frozen=True)
class Plan:
    """How to make an environment.

    Attributes:
        inherits: The caller's packages, its torch among them, are importable in it.
        requirements: What has to be importable at the end, torch left out where it is inherited.
        constraints: Lines of a constraints file for every call of pip.
        find_cpu_torch: Choose a CPU build of torch before anything is installed.
        key: Name of the environment's folder: equal facts give equal names.
    """

    inherits: bool
    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    find_cpu_torch: bool
    key: str


def make_plan(caller: Caller, gpu: bool, system: str, dependencies: Sequence[str]) -> Plan:
    """Plan the environment for this caller.

    Args:
        caller: The calling interpreter.
        gpu: Whether the machine has an NVIDIA GPU; counts only where torch is missing.
        system: A value of `sys.platform`.
        dependencies: The project's requirements, torch among them.
    """
    inherits = caller.torch is not None and torch_is_recent(caller.torch)
    if inherits:
        requirements = tuple(each for each in dependencies if distribution(each) != "torch")
        constraints: tuple[str, ...] = (f"torch=={caller.torch}",)
        what = f"torch{caller.torch}"
        facts: tuple[object, ...] = (caller.prefix, caller.site_folders, caller.torch)
    else:
        requirements, constraints = tuple(dependencies), ()
        what = "cuda" if gpu else "cpu"
        facts = (caller.base, gpu)
    digest = hashlib.sha256(json.dumps([LAYOUT, facts, sorted(dependencies)]).encode()).hexdigest()
    readable = re.sub(r"[^\w.+-]", "_", f"python{caller.version}-{what}")
    return Plan(
        inherits=inherits,
        requirements=requirements,
        constraints=constraints,
        # The default build of torch is one for CUDA on Linux alone.
        find_cpu_torch=not inherits and not gpu and system == "linux",
        key=f"{readable}-{digest[:12]}",
    )


def distribution(requirement: str) -> str:
    """The normalised distribution name that a requirement begins with."""
    found = re.match(r"[A-Za-z0-9][\w.-]*", requirement)
    return re.sub(r"[-_.]+", "-", found.group(0)).lower() if found else requirement


def cpu_torch_candidates(on_offer: Sequence[str], machine: str, dependency: str) -> tuple[str, ...]:
    """The requirements to try for a CPU build of torch, best first.

    Args:
        on_offer: Versions on offer, newest first, as far as known.
        machine: Like "x86_64" (`platform.machine()`).
        dependency: The project's own requirement, like "torch>=2.9".
    """
    labelled = [f"torch=={version}" for version in on_offer if "+cpu" in version and torch_is_recent(version)]
    known = [f"torch=={KNOWN_CPU_TORCH[machine]}"] if machine in KNOWN_CPU_TORCH else []
    return (*labelled[:LABELLED_TRIED], dependency, *known)
