"""Stand-ins for the tests of the commands: packages, wheels, callers and reports that cost no download.

Promise: everything is made in the folder that the test gives; nothing here needs a network or a real torch.
"""

import functools
import importlib.machinery
import json
import os
import shlex
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.gate_record import INTERLEAVED, Case, Contestant, Estimate, Machine, Record

CHECKOUT = Path(__file__).resolve().parent.parent
# A file on a disk that is always full, and why a test of it is left out elsewhere.
FULL, NO_FULL = Path("/dev/full"), "the system has no disk that is always full"

# Makes the environment for the interpreter that runs it; the arguments are checkout, cache, offline, tools, gpu.
ENSURE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ci import environment, exits, facts
checkout, cache, offline, tools, gpu = sys.argv[1:]
facts.has_gpu = lambda: gpu == "gpu"
try:
    made = environment.ensure(
        Path(checkout), Path(cache), with_tools=tools == "tools", offline=offline == "offline",
        say=lambda line: sys.stderr.write(line + "\\n"),
    )
except exits.Stop as stop:
    sys.stderr.write("STOP " + stop.line + "\\n")
    sys.exit(stop.code)
print(made.folder)
"""


def make_checkout(folder: Path, dependencies: Sequence[str], tools: Sequence[str] = ()) -> Path:
    """A checkout that is nothing but a pyproject.toml with these requirements."""
    folder.mkdir(parents=True)
    text = f"[project]\ndependencies = {json.dumps(list(dependencies))}\n"
    text += f"[dependency-groups]\ndev = {json.dumps(list(tools))}\n"
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def package_files(name: str, version: str, requires: Sequence[str] = ()) -> dict[str, str]:
    """The files of a pure Python distribution, by path: a module with `__version__`, and its metadata."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    return {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": "\n".join([*metadata, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: fakes\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
        f"{info}/INSTALLER": "fakes\n",
    }


def put_package(site: Path, name: str, version: str, requires: Sequence[str] = ()) -> None:
    """Put an installed distribution into a site-packages folder."""
    for path, text in package_files(name, version, requires).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")


def make_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> Path:
    """Write a wheel into a folder that pip can be pointed at with PIP_FIND_LINKS."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in package_files(name, version, requires).items():
            archive.writestr(inside, text)
    return path


def make_caller(folder: Path, packages: Mapping[str, str]) -> Path:
    """A venv with these distributions and, by a link, a pip of this machine if there is one; returns its python."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    site = site_of(folder)
    for name, version in packages.items():
        put_package(site, name, version)
    pip = pip_here()
    if pip is not None:
        (site / "pip").symlink_to(pip)
    return folder / "bin" / "python"


@functools.cache
def pip_here() -> Path | None:
    """The folder of the pip of the running interpreter, or of the one that its venv was made from."""
    # Not `importlib.util.find_spec`: that asks setuptools' import hook too, which warns once distutils was imported.
    spec = importlib.machinery.PathFinder.find_spec("pip")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    base = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    status, out, _ = run([base, "-c", "import pip; print(pip.__file__)"], sealed_variables())
    return None if status else Path(out.strip()).parent


def site_of(environment: Path) -> Path:
    """The site-packages folder of a venv of the running interpreter's version."""
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def ensure_command(
    caller: Path, checkout: Path, cache: Path, *, offline: bool = True, tools: bool = False, gpu: bool = False
) -> list[str]:
    """The command that makes the environment of `checkout` for this caller."""
    flags = ["offline" if offline else "online", "tools" if tools else "plain", "gpu" if gpu else "none"]
    return [str(caller), "-c", ENSURE.format(root=str(CHECKOUT)), str(checkout), str(cache), *flags]


def sealed_variables(**more: str) -> dict[str, str]:
    """Environment variables with which pip reaches no index and reads no settings of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    kept.pop("VIRTUAL_ENV", None)
    return kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"} | more


def run(command: Sequence[str], variables: Mapping[str, str], folder: Path | None = None) -> tuple[int, str, str]:
    """Run a command to its end; returns status, stdout and stderr."""
    done = subprocess.run(
        command, env=dict(variables), cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def make_program(path: Path, text: str) -> Path:
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def finding(
    text: str = "off by the factor 8", case: str = "shape=4x8;seed=3", shipped: bool = False
) -> dict[str, object]:
    """A finding of a report, with the command that the suite prints for it."""
    words = ["/checkout/ci/verify", *([] if shipped else ["--candidate=/some where/k.py"]), "--target=cpu"]
    words += [f"--case={case}"] if case else []
    return {"kind": "wrong-value", "text": text, "case": case, "replay": shlex.join(words)}


def target(verdict: str = "accepted", reason: str = "", shipped: bool = False, **more: object) -> dict[str, object]:
    """A target of a report: one property of 100 examples, with a finding where the verdict is against."""
    against = verdict not in ("accepted", "not-judged")
    judged = verdict != "not-judged"
    one = {"name": "differential", "outcome": "failed" if against else "passed", "examples": 100, "seconds": 1.5}
    properties = [one | {"worst": {}, "findings": [finding(shipped=shipped)] if against else []}] if judged else []
    status = {"status": "judged" if judged else "not-judged", "verdict": verdict if judged else None}
    return status | {"reason": reason, "supported": [], "unsupported": {}, "properties": properties} | more


def candidate(verdict: str = "accepted", shipped: bool = False, **targets: dict[str, object]) -> dict[str, object]:
    """A candidate of a report, judged on cpu unless targets are given."""
    return {
        "path": "/some where/k.py",
        "name": "k",
        "sha256": "0" * 64,
        "shipped": shipped,
        "verdict": verdict,
        "targets": targets or {"cpu": target(verdict)},
    }


def report(*candidates: dict[str, object], passed: int = 3, failed: int = 0, **run_fields: object) -> dict[str, object]:
    """A report of the suite, schema 1."""
    fields: dict[str, object] = {"profile": "kp-default", "seed": 0, "targets": ["cpu"], "isolated": True}
    return {
        "schema": 1,
        "tool": {"name": "kernelproof", "version": "0.1.0", "commit": ""},
        "environment": {"python": "3.12.3", "torch": "2.11.0", "gpu": None, "driver": None},
        "run": fields | {"usage_error": None, "internal_errors": []} | run_fields,
        "candidates": list(candidates),
        "tests": {"passed": passed, "failed": failed, "skipped": 1, "deselected": 2, "errors": 0},
        "not_run": [{"what": "cuda", "why": "no GPU"}],
    }


def timing(
    shape: str = "4096x4096",
    dtype: str = "float32",
    of_copy: float = 0.9,
    target_name: str = "cuda",
    candidate_name: str = "l1_norm",
    **peers: float,
) -> dict[str, object]:
    """A benchmark of a stored run, with the fraction of a copy of the candidate and of its peers."""
    copy_seconds = 1e-3
    facts: dict[str, object] = {
        "target": target_name,
        "shape": shape,
        "dtype": dtype,
        "layout": "contiguous",
        "seconds": copy_seconds / of_copy,
        "copy_seconds": copy_seconds,
        "gb_per_s": 2500 * of_copy,
        "of_copy": of_copy,
    }
    facts |= {f"{name}_seconds": copy_seconds / fraction for name, fraction in peers.items()}
    label = f"{candidate_name}-{target_name}-{shape}-{dtype}"
    name = f"test_time_of_a_call[{label}]"
    return {"name": name, "params": {"race": label}, "extra_info": facts, "stats": {}}


def stored_run(
    *timings: dict[str, object], gpu: str | None = "NVIDIA H100 80GB HBM3", day: int = 1, commit: str = "0" * 40
) -> dict[str, object]:
    """A stored run of pytest-benchmark, as far as a page reads it."""
    ours = {"gpu": gpu, "driver": "580", "processor": "A Processor", "torch": "2.11.0", "cuda": "13.0"}
    return {
        "machine_info": {"node": "here", "kernelproof": ours},
        "commit_info": {"id": commit, "dirty": False},
        "benchmarks": list(timings),
        "datetime": f"2026-11-{day:02}T02:17:00.000000+00:00",
        "version": "5.3.1",
    }


def gate_case(name: str = "4096x4096-float32", verdict: str = "same", ratio: float = 1.0, **more: Any) -> Case:
    """A case of the gate; one that was not measured needs its reason."""
    shape, _, dtype = name.partition("-")
    if verdict == "not-measured":
        return Case(name, verdict, shape, dtype, **more)
    figures: dict[str, Any] = {"ratio": Estimate(ratio, ratio - 0.004, ratio + 0.004), "rounds": 40, "bytes": 1 << 27}
    figures |= {"candidate_of_copy": Estimate(0.95 / ratio, 0.9, 1.0), "base_of_copy": Estimate(0.95, 0.9, 1.0)}
    return Case(name, verdict, shape, dtype, "contiguous", **(figures | more))


def gate(*cases: Case, **more: Any) -> Record:
    """A record of the gate."""
    given: dict[str, Any] = {
        "date": "2026-11-28T02:17:00+00:00",
        "target": "cuda",
        "machine": Machine("0.1.0", "3.12.3", "2.11.0", "NVIDIA H100 80GB HBM3", "580.1", "13.0", "A Processor"),
        "candidate": Contestant("HEAD", "/checkout/kernels/l1_norm.py", "a" * 64, "1" * 40),
        "base": Contestant("the merge base with main", "/base/kernels/l1_norm.py", "b" * 64, "2" * 40),
        "comparison": INTERLEAVED,
        "minimum": 0.03,
        "confidence": 0.9997,
        "gate_confidence": 0.99,
        "seconds": 187.0,
        "cases": cases,
    }
    return Record(**(given | more))
