"""The property `memcheck`, with a script in the tool's place: what it says of a case stands below that case's line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from .. import engine, memcheck
from ..cases import parse
from ..examination import Examination, Property
from ..findings import Kind
from .conftest import RIGHT, MakeSubject

CASE = parse("shape=3x1023,seed=16")
FENCED = Property("fenced", "", None, memcheck.fenced, pinned=(CASE,))
FOUND = "========= Invalid __global__ read of size 4 bytes"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that runs the program and finds nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "compute-sanitizer"
    skips = 'while [ "${1#--}" != "$1" ]; do shift; done'
    script.write_text(f'#!/bin/sh\n{skips}\nUNDER_A_TOOL=1 exec "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def examined(make: MakeSubject, body: str) -> Examination:
    # There is no card to wait for.
    head = "import os\nif 'UNDER_A_TOOL' in os.environ: torch.cuda.synchronize = lambda *_: None"
    subject = make(body, head=head)
    assert subject.probe() is None, subject.broken
    return engine.replay(subject, FENCED, CASE)


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize("end", ["\\n", ""], ids=["whole lines", "a line left open"])
def test_what_a_candidate_prints_hides_no_case(end: str, make_subject: MakeSubject) -> None:
    quiet = examined(make_subject, f"print('so far', end='{end}')\n{RIGHT}")
    assert (quiet.outcome, quiet.not_run, quiet.examples) == ("passed", {}, 1)
    said = f"if x.shape[1] == 4097: print('\\n{FOUND}')"
    loud = examined(make_subject, f"print('so far', end='{end}')\n{said}\n{RIGHT}")
    assert [finding.kind for finding in loud.findings] == [Kind.OUT_OF_BOUNDS]
    expected = "invalid __global__ read of size 4 bytes (compute-sanitizer memcheck, at shape=3x4097"
    assert loud.findings[0].text.startswith(expected)


@pytest.mark.usefixtures("tool")
def test_one_that_ends_before_the_last_case_was_not_watched(make_subject: MakeSubject) -> None:
    # Only where nobody else is watching: a worker would see the end, too.
    seen = examined(make_subject, f"import os\nif 'UNDER_A_TOOL' in os.environ: os._exit(0)\n{RIGHT}")
    assert (seen.outcome, seen.findings) == ("not-examined", ())
    assert "compute-sanitizer did not get to the end" in seen.reason


@pytest.mark.usefixtures("tool")
def test_what_it_leaves_running_is_ended(make_subject: MakeSubject, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    leave = f"""
import os, time
if 'UNDER_A_TOOL' in os.environ and not os.path.exists({str(note)!r}):
    child = os.fork()
    if child == 0:
        time.sleep(60)
    open({str(note)!r}, 'w').write(str(child))
{RIGHT}"""
    assert examined(make_subject, leave).outcome == "passed"
    status = Path(f"/proc/{note.read_text(encoding='ascii')}/stat")
    for _ in range(200):
        if not status.exists() or status.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("a child of the candidate outlives the tool")


def test_without_the_tool_nothing_is_examined(make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(memcheck, "_USUAL_PLACE", Path("/nowhere"))
    seen = examined(make_subject, RIGHT)
    assert (seen.outcome, seen.reason) == ("not-examined", "needs compute-sanitizer, which comes with the CUDA toolkit")


@pytest.mark.usefixtures("tool")
def test_one_that_raises_wherever_it_is_watched_was_not_watched(make_subject: MakeSubject) -> None:
    body = f"import os\nif 'UNDER_A_TOOL' in os.environ: raise ValueError('not here')\n{RIGHT}"
    seen = examined(make_subject, body)
    assert (seen.outcome, seen.findings) == ("not-examined", ())
    assert seen.reason == "every call raises where compute-sanitizer watches: ValueError: not here"


@pytest.mark.usefixtures("tool")
def test_one_that_prints_without_end_is_stopped(make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcheck, "_MOST_OUTPUT", 1 << 16)
    monkeypatch.setattr(memcheck, "_LOOK_AGAIN", 0.1)
    body = f"import os\nwhile 'UNDER_A_TOOL' in os.environ: print('x' * 1000, flush=True)\n{RIGHT}"
    assert "print more than" in examined(make_subject, body).reason
