"""racecheck, synccheck and initcheck of compute-sanitizer on every kernel of ours; and that each of them can accuse.

memcheck is a property that any candidate is examined for (`properties.memcheck`). These three look at what is the
shipped kernels' own: shared memory (racecheck knows no other), barriers, and scratch that nobody has written. They are
slow, so they carry the marker `sanitizer`, which is left out and counted unless ``-m`` names it: once a night.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .. import layouts, memcheck
from ..options import ROOT
from ..process import nursery_environment
from ..sanitized import CASE_MARK
from ..targets import machine
from .choices import Choose
from .under_sanitizer import CASES

TOOLS = ("racecheck", "synccheck", "initcheck")
#: Seconds for a tool and all cases.
_SECONDS = 300.0
on_a_card = [
    pytest.mark.sanitizer,
    pytest.mark.gpu,
    pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu),
    pytest.mark.timeout(900),
]
_SUMMARY = re.compile(r"^=+ (?:RACECHECK|ERROR) SUMMARY: (\d+) ", re.MULTILINE)
_ACCUSED = re.compile(r"^=+ ((?:Error|Warning): .*(?:[Rr]ace|hazard)|Barrier error|Uninitialized ).*$", re.MULTILINE)

#: Candidates with the fault that a tool is there for.
FAULTS = {
    "racecheck": "__shared__ float s[256]; s[t] = x[t]; y[t] = s[255 - t];",
    # Threads that still have work when others wait: of those that have ended nobody is told.
    "synccheck": "__shared__ float s[256]; s[t] = x[t]; "
    "if (t < 100) { __syncthreads(); y[t] = s[99 - t]; } else y[t] = x[t];",
    "initcheck": "y[t] = x[t] + y[t];",
}
FAULTY = '''
import ctypes
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
__global__ void fault(const float* x, float* y) {{ const int t = threadIdx.x; {body} }}
extern "C" void run(const float* x, float* y) {{ fault<<<1, 256>>>(x, y); }}
"""
LIBRARY = load_inline(name="fault_of_{name}", cpp_sources="", cuda_sources=SOURCE, functions=None,
                      is_python_module=False, no_implicit_headers=True)
RUN = ctypes.CDLL(LIBRARY).run
RUN.argtypes = [ctypes.c_void_p, ctypes.c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        RUN(x.data_ptr(), y.data_ptr())
        return y
'''


def accusations(report: str) -> list[str]:
    """What a tool says is wrong, each below the case that it was seen in; a report without an end is one, too."""
    summary = _SUMMARY.search(report)
    if summary is None:
        return [f"the tool did not get to its end: {report[-2000:]}"]
    found = []
    for part in re.split(rf"^{re.escape(CASE_MARK)}", report, flags=re.MULTILINE):
        where = part.partition("\n")[0]
        found += [f"{where}: {said[0].lstrip('= ')}" for said in _ACCUSED.finditer(part)]
    return found or ([f"the tool counts {summary[1]} errors"] if int(summary[1]) else [])


def watched(tool: str, command: list[str]) -> str:
    """What a program and the tool that watches it print; `""` for no tool."""
    words = [memcheck.tool(), f"--tool={tool}", "--print-limit=20"] if tool else []
    environment = {**nursery_environment(perturb=False), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(
        [*words, sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("tool", [pytest.param(tool, marks=on_a_card) for tool in TOOLS])
def test_no_kernel_of_ours_is_accused(tool: str) -> None:
    watched("", ["properties.meta.under_sanitizer"])  # builds the kernel: not under a tool
    report = watched(tool, ["properties.meta.under_sanitizer"])
    assert accusations(report) == []
    seen = [line.removeprefix(CASE_MARK) for line in report.splitlines() if line.startswith(CASE_MARK)]
    assert seen == [str(case) for _, _, case in CASES], report[-3000:]


@pytest.mark.parametrize("tool", [pytest.param(tool, marks=on_a_card) for tool in TOOLS])
def test_each_tool_accuses_the_fault_that_it_is_there_for(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY.format(body=FAULTS[tool], name=tool), encoding="utf-8")
    what = {"path": str(path), "tag": f"fault_{tool}", "model": "ModelNew", "init": [], "device": "cuda:0"}
    command = ["properties.sanitized", json.dumps(what), "shape=1x256"]
    watched("", command)  # builds it
    report = watched(tool, command)
    assert any("shape=1x256" in said for said in accusations(report)), report[-3000:]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", []),
        ("========= ERROR SUMMARY: 0 errors\n", []),
        ("========= ERROR SUMMARY: 3 errors\n", ["the tool counts 3 errors"]),
        (
            f"{CASE_MARK}shape=1x2\n========= Error: Race reported between Write access at k+0x10\n"
            "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n",
            ["shape=1x2: Error: Race reported between Write access at k+0x10"],
        ),
        (
            f"{CASE_MARK}shape=1x2\n{CASE_MARK}shape=1x3\n"
            "========= Barrier error detected. Divergent thread(s) in block\n========= ERROR SUMMARY: 1 error\n",
            ["shape=1x3: Barrier error detected. Divergent thread(s) in block"],
        ),
        (
            f"{CASE_MARK}shape=1x2\n========= Uninitialized __global__ memory read of size 4 bytes\n"
            "========= ERROR SUMMARY: 1 error\n",
            ["shape=1x2: Uninitialized __global__ memory read of size 4 bytes"],
        ),
    ],
)
def test_a_report_is_read_as_it_is_meant(report: str, said: list[str]) -> None:
    assert accusations(report) == said


def test_a_report_that_breaks_off_is_an_accusation() -> None:
    assert "did not get to its end" in accusations("========= COMPUTE-SANITIZER\n")[0]


def test_every_kernel_has_a_case_and_the_limits_choose_it(choose: Choose) -> None:
    kinds = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
    found = [
        choose(case.shape, kinds[case.dtype], limits, layouts.geometry(case.layout, case.shape).strides).regime
        for _, limits, case in CASES
    ]
    assert found == [name for name, _, _ in CASES]
    threads = {choose(case.shape, kinds[case.dtype], limits).threads for name, limits, case in CASES if name == "block"}
    assert {32, 384} < threads, "as fast memory asks for"
    assert {name for name, _, _ in CASES} == {
        "tile",
        "group",
        "block",
        "cluster",
        "grid",
        "sweeps",
        "columns",
        "strided",
        "registers",
        "alone",
        "ahead",
        "few",
        "slab",
    }
