"""The runner: whatever a candidate does, the judging process gets an observation, and goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch
from hypothesis.database import InMemoryExampleDatabase

from .. import engine, inputs
from ..cases import parse
from ..observation import Observation, Outcome
from ..process import Nursery
from ..protocol import OVERWRITTEN_BYTE
from ..replies import LoadFailure
from ..runner import Runner
from .conftest import RIGHT, MakeRunner

GIVEN = inputs.build(parse("shape=3x5,seed=1"))


def gone(pid: int) -> bool:
    """Whether a process has ended, within two seconds."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def death(seen: Observation) -> str:
    assert seen.death is not None
    return seen.death.cause


def works(runner: Runner) -> bool:
    seen = runner.observe(GIVEN)
    expected = GIVEN.logical / GIVEN.logical.abs().mean(1, keepdim=True)
    return seen.output is not None and torch.equal(seen.output, expected)


def test_a_result_comes_back_bit_for_bit(make_runner: MakeRunner) -> None:
    for line in ("shape=3x5,seed=1", "shape=4x6,dtype=float16,layout=order1.0+offset3,seed=2", "shape=2x3x4,seed=1"):
        given = inputs.build(parse(line))
        seen = make_runner("return x.clone()").observe(given)
        assert seen.outcome is Outcome.RETURNED
        assert seen.damage is None
        assert seen.output is not None
        assert torch.equal(inputs.bits(seen.output), inputs.bits(given.logical))
        assert seen.meta is not None
        assert seen.meta.shape == given.shape


def test_what_the_candidate_sees_is_an_ordinary_tensor(make_runner: MakeRunner) -> None:
    seen = make_runner("""
        assert type(x) is torch.Tensor and x._base is None and not x.requires_grad
        assert x.untyped_storage().nbytes() == 4 * ((x.numel() - 1) * 2 + 1 + 3), x.untyped_storage().nbytes()
        assert x.storage_offset() == 3 and x.stride() == (10, 2) and x.is_contiguous() is False
        return x.clone()
    """).observe(inputs.build(parse("shape=3x5,layout=offset3+step2,seed=1")))
    assert seen.outcome is Outcome.RETURNED, seen.error


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("import os\nos.abort()", "SIGABRT"),
        ("import os\nos._exit(0)", "exit status 0"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os\nos.closerange(3, 4096)\n" + RIGHT, "exit status 1"),
        ("import os\n[os.write(fd, b'{}\\n') for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}') "
         "and os.readlink(f'/proc/self/fd/{fd}').startswith('pipe:') and fd != 3]\n" + RIGHT, "wrote garbage"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + RIGHT, "ended the process that had started it"),
        ("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nos._exit(3)", "exit status 3"),
    ],
    ids=["abort", "exit 0", "null", "kill itself", "close all", "garbage", "kill parent", "child holds the pipe"],
)  # fmt: skip
def test_a_death_is_observed_and_the_next_candidate_runs(make_runner: MakeRunner, body: str, cause: str) -> None:
    seen = make_runner(body).observe(GIVEN)
    assert seen.outcome is Outcome.DIED
    assert cause in death(seen)
    assert works(make_runner(RIGHT))


#: Finds the worker's own reply pipe and the number of the request, and waits until what it wrote there was read.
FORGE = """
import json, os, sys, time
def forge(line):
    frame = sys._getframe()
    while "reply_fd" not in frame.f_locals:
        frame = frame.f_back
    request = frame.f_locals["request"]
    os.write(frame.f_locals["reply_fd"], (line(request) if callable(line) else line).encode() + b"\\n")
    time.sleep(1)
def returned(**meta):
    given = {"type": "torch.Tensor", "shape": [3, 5], "dtype": "float32", "device": "cpu", "layout": "strided"}
    given |= {"strides": [5, 1]} | meta
    return lambda request: json.dumps({"outcome": "returned", "meta": given, "number": request["number"]})
"""


@pytest.mark.parametrize(
    "line",
    [
        "'[' * 100000",
        "returned(strides=[1])",
        "returned(storage=[1, 2, 3])",
        "returned(left=5)",
        "returned(left=[5])",
        "returned(shape=[3, True])",
        "returned(type=None)",
        "returned(more=1)",
        "lambda r: json.dumps({'outcome': 'raised', 'error': {'type': 5, 'bases': [], 'text': ''}, "
        "'number': r['number']})",
        "lambda r: json.dumps({'outcome': 'raised', 'error': 5, 'number': r['number']})",
    ],
)
def test_a_forged_reply_of_another_form_is_garbage(line: str, make_runner: MakeRunner) -> None:
    seen = make_runner(f"forge({line})\n{RIGHT}", head=FORGE.replace("\\\\", "\\")).observe(GIVEN)
    assert seen.outcome is Outcome.DIED
    assert "wrote garbage" in death(seen)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("'half of a pair \\ud800'", "half of a pair \\ud800"),
        ("'\\x1b[2Jgone\\r\\0'", "\\x1b[2Jgone\\r\\x00"),
        ("'\\x1b[1;31mred\\x1b[0m and \\u00e4'", "red and \u00e4"),
    ],
)
def test_words_that_a_terminal_would_act_on_are_spelled(words: str, shown: str, make_runner: MakeRunner) -> None:
    error = make_runner(f"raise RuntimeError({words})").observe(GIVEN).error
    assert error is not None
    assert error.text == shown
    failure = make_runner(RIGHT, head=f"raise RuntimeError({words})").load()
    assert failure is not None
    assert shown in failure.text
    dead = (
        make_runner(
            f"import os, sys\nsys.stderr.buffer.write({words}.encode(errors='surrogatepass') + b'\\n')\n"
            "sys.stderr.flush()\nos.abort()"
        )
        .observe(GIVEN)
        .death
    )
    assert dead is not None
    assert all(each.isprintable() for line in dead.log for each in line)


def test_a_forged_reply_while_it_is_loaded_is_garbage(make_runner: MakeRunner) -> None:
    line = "lambda r: json.dumps({'outcome': 'raised', 'stage': 'later', 'error': 5, 'number': r['number']})"
    failure = make_runner(RIGHT, head=f"{FORGE}\nforge({line})".replace("\\\\", "\\")).load()
    assert failure is not None
    assert "wrote garbage" in failure.text


@pytest.mark.parametrize(
    "spoil",
    [
        "os.makedirs(f'{folder}/x/lock')",
        "os.makedirs(f'{folder}/kernelproof.lock/x')",
        "shutil.rmtree(folder); open(folder, 'w').close()",
    ],
)
def test_a_folder_of_builds_that_was_tampered_with_is_told(spoil: str, make_runner: MakeRunner) -> None:
    body = "import os, shutil\nfolder = os.environ['TORCH_EXTENSIONS_DIR']\n"
    if "kernelproof.lock" in spoil:
        body += "os.remove(f'{folder}/kernelproof.lock')\n"
    runner = make_runner(f"{body}{spoil}\n{RIGHT}")
    assert works(runner)
    runner.renew()
    failure = runner.load()
    if "x/lock" in spoil:
        assert failure is None
    else:
        assert failure is not None
        assert "the folder of its builds cannot be used" in failure.text


def test_a_hang_is_killed_within_the_limit_with_all_it_started(make_runner: MakeRunner, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    runner = make_runner(f"""
        import os, pathlib, time
        children = []
        for far in (False, True):
            child = os.fork()
            if child == 0:
                if far:
                    os.setsid()
                while True:
                    time.sleep(1)
            children.append(child)
        pathlib.Path({str(note)!r}).write_text(f"{{os.getpid()}} {{children[0]}} {{children[1]}}")
        while True:
            pass
    """)
    assert runner.load() is None
    began = time.monotonic()
    seen = runner.observe(GIVEN, timeout=1.0)
    assert seen.outcome is Outcome.TIMED_OUT
    assert time.monotonic() - began < 5
    assert all(gone(int(pid)) for pid in note.read_text().split())
    assert runner.deaths == 1


def test_the_first_call_of_a_kind_may_compile_in_every_process(make_runner: MakeRunner) -> None:
    compiles = "if x.dtype not in known:\n    time.sleep(0.8)\nknown.add(x.dtype)"
    runner = make_runner(f"{compiles}\ntime.sleep(2 * (len(x) == 7))\n{RIGHT}", "import time\nknown = set()", call=0.5)
    for line in ("shape=3x5", "shape=3x5,dtype=float16"):
        assert runner.observe(inputs.build(parse(line))).outcome is Outcome.RETURNED
    runner.renew()
    assert works(runner), "of what the last process had compiled a fresh one has nothing"
    assert runner.observe(inputs.build(parse("shape=7x5"))).outcome is Outcome.TIMED_OUT
    assert runner.observe(GIVEN).outcome is Outcome.TIMED_OUT, "who has hung once gets no longer than a call may take"


def test_the_last_lines_of_a_dead_worker_are_kept(make_runner: MakeRunner) -> None:
    seen = make_runner("""
        import os, sys
        print("what it was doing", flush=True)
        os.abort()
    """).observe(GIVEN)
    assert seen.death is not None
    assert "what it was doing" in "\n".join(seen.death.log)


def test_of_the_frames_in_which_it_died_only_its_own_are_shown(make_runner: MakeRunner) -> None:
    called = make_runner("os.abort()", head="import os").observe(GIVEN).death
    loaded = make_runner("pass", head="import os\nos.abort()").load()
    assert called is not None
    assert loaded is not None
    for log in (called.log, loaded.details):
        frames = [line for line in log if line.startswith('  File "')]
        assert frames, log
        assert all("candidate_" in frame for frame in frames), log


def test_an_exception_comes_with_type_message_and_place(make_runner: MakeRunner) -> None:
    seen = make_runner("raise KeyError('no such thing')").observe(GIVEN)
    assert seen.outcome is Outcome.RAISED
    assert seen.error is not None
    assert (seen.error.type, seen.error.bases[1]) == ("KeyError", "LookupError")
    assert "no such thing" in str(seen.error)
    assert "candidate_0.py, line" in str(seen.error)


def test_torch_still_writes_its_errors_so(make_runner: MakeRunner) -> None:
    head = "@torch.jit.script\ndef f(x):\n    assert x.dim() == 7, 'needs seven'\n    return x"
    seen = make_runner("return f(x)", head=head).observe(GIVEN)
    assert str(seen.error).startswith("Error: RuntimeError: AssertionError: needs seven (candidate_0.py, line")


def test_an_exception_whose_message_raises_is_survived(make_runner: MakeRunner) -> None:
    seen = make_runner("raise Bad()", head="class Bad(Exception):\n    def __str__(self):\n        1 / 0").observe(
        GIVEN
    )
    assert seen.error is not None
    assert "its message raises ZeroDivisionError" in seen.error.text


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("def f(:", "does not parse"),
        ("raise ValueError('early')", "raises while it is imported: ValueError: early"),
        ("import sys\nsys.exit(0)", "raises while it is imported: SystemExit"),
        ("import os\nos._exit(0)", "the process that loads it ended: exit status 0"),
        ("import no_such_module_here", "ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_loaded_says_why(make_runner: MakeRunner, head: str, said: str) -> None:
    failure = make_runner(RIGHT, head=head).load()
    assert isinstance(failure, LoadFailure)
    assert said in failure.text


def test_a_file_without_model_new_says_what_it_defines(make_runner: MakeRunner) -> None:
    runner = make_runner(RIGHT)
    runner.candidate.write_text("class Net: pass\n", encoding="utf-8")
    failure = runner.load()
    assert failure is not None
    assert "defines no class ModelNew (it defines Net)" in failure.text


def test_an_import_that_sleeps_is_killed_within_the_limit(make_runner: MakeRunner) -> None:
    began = time.monotonic()
    failure = make_runner(RIGHT, head="import time\ntime.sleep(3600)", call=0.5, build=0.5).load()
    assert failure is not None
    assert failure.timed_out
    assert time.monotonic() - began < 10


def test_damage_to_the_input_is_told_apart_from_damage_around_it(make_runner: MakeRunner) -> None:
    given = inputs.build(parse("shape=3x4,layout=pitch2,seed=1"))
    inside = make_runner("x[1, 2] = 7\nreturn x.clone()").observe(given)
    assert inside.damage is not None
    assert (inside.damage.inside, inside.damage.first, inside.damage.outside) == (1, 6, 0)
    gap = make_runner("x.as_strided((1,), (1,), 4).fill_(7)\nreturn x.clone()").observe(given)
    assert gap.damage is not None
    assert (gap.damage.inside, gap.damage.outside) == (0, 4)
    before = make_runner("import ctypes\nctypes.memset(x.data_ptr() - 8, 0, 8)\nreturn x.clone()").observe(given)
    assert before.damage is not None
    assert (before.damage.inside, before.damage.outside) == (0, 8)


@pytest.mark.parametrize(("behind", "dies"), [(0, False), (1, True)], ids=["last byte", "one further"])
def test_one_byte_behind_the_last_is_death(make_runner: MakeRunner, behind: int, dies: bool) -> None:
    given = inputs.build(parse("shape=1x16,seed=1"))
    runner = make_runner(f"import ctypes\nctypes.string_at(x.data_ptr() + 63 + {behind}, 1)\nreturn x.clone()")
    seen = runner.observe(given)
    assert (seen.outcome is Outcome.DIED) is dies
    if dies:
        assert death(seen) == "SIGSEGV"
        assert runner.observe(given, slack=1 << 12).outcome is Outcome.RETURNED


def test_kept_results_are_read_late(make_runner: MakeRunner) -> None:
    runner = make_runner("self.y = getattr(self, 'y', torch.empty_like(x))\nself.y.copy_(x)\nreturn self.y")
    second = inputs.build(parse("shape=3x5,seed=2"))
    assert runner.observe(GIVEN, keep="one").output is None
    runner.observe(second)
    late = runner.collect("one", GIVEN)
    assert late.output is not None
    # The second call's result lay there, too, and was written over once it had been read, as its caller may.
    assert (inputs.bits(late.output) == int.from_bytes(bytes([OVERWRITTEN_BYTE]) * 4, "little")).all()


def test_a_result_of_another_shape_or_type_is_described_and_not_read(make_runner: MakeRunner) -> None:
    for body, kind in (("return x[:1]", "torch.Tensor"), ("return [x]", "list"), ("return None", "NoneType")):
        seen = make_runner(body).observe(GIVEN)
        assert seen.output is None
        assert seen.meta is not None
        assert seen.meta.type == kind


def test_fresh_memory_of_a_worker_is_no_number_that_was_computed(make_runner: MakeRunner) -> None:
    seen = make_runner("return torch.empty_like(x)").observe(inputs.build(parse("shape=64x64,seed=1")))
    assert seen.output is not None
    assert (inputs.bits(seen.output) == 0x7F7F7F7F).all()


def test_a_candidate_cannot_tell_that_it_is_tested(make_runner: MakeRunner) -> None:
    seen = make_runner("""
        import os, sys
        assert not [name for name in sys.modules if name.split(".")[0] in ("pytest", "_pytest", "hypothesis")]
        assert not [name for name in os.environ if name.startswith(("PYTEST", "HYPOTHESIS"))]
        assert not [name for name in sys.modules if name.startswith("reference")], "the oracle is here"
        return x.clone()
    """).observe(GIVEN)
    assert seen.outcome is Outcome.RETURNED, seen.error


def test_candidates_share_nothing(make_runner: MakeRunner) -> None:
    spoil = "torch.set_default_dtype(torch.float64)\ntorch.set_flush_denormal(True)\ntorch.Tensor.abs = None\n"
    first = make_runner("return x", head=spoil)
    assert first.load() is None
    check = """
        assert torch.get_default_dtype() is torch.float32 and torch.Tensor.abs is not None
        assert (torch.tensor(1e-40) * 1).item() > 0
        return x.clone()
    """
    assert make_runner(check).observe(GIVEN).outcome is Outcome.RETURNED


def test_a_nursery_that_was_killed_is_started_again(make_runner: MakeRunner, nursery: Nursery) -> None:
    assert works(make_runner(RIGHT))
    assert nursery._process is not None
    os.kill(nursery._process.pid, signal.SIGKILL)
    assert works(make_runner(RIGHT))


def test_a_changed_file_has_another_tag(make_runner: MakeRunner) -> None:
    runner = make_runner(RIGHT)
    before = runner.tag
    runner.candidate.write_text(runner.candidate.read_text() + "\n# edited\n", encoding="utf-8")
    assert runner.tag != before


def test_a_name_may_be_no_utf8(make_runner: MakeRunner) -> None:
    runner = make_runner(RIGHT)
    runner.candidate = runner.candidate.with_name(os.fsdecode(b"k\xff.py"))
    assert len(runner.tag) == 8
    database = engine.PrefixedDatabase(InMemoryExampleDatabase(), f"shapes cpu {runner.candidate}")
    database.save(b"key", b"an example")
    assert list(database.fetch(b"key")) == [b"an example"]
