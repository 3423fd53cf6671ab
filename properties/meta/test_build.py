"""Tests of the build: every way it can fail is one message, and no accident makes it wait, break or load a torso."""

import concurrent.futures
import errno
import importlib.util
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernels import build, cache, folder, toolchain
from kernels.build import Sources, load
from kernels.cache import Entry
from kernels.errors import BuildError
from kernels.explain import MAX_QUOTED_ERRORS, explain
from kernels.toolchain import Compiler, architectures

CHECKOUT = Path(__file__).resolve().parents[2]

# Seconds that a child may take to import torch and compile a few lines, on a machine busy with other things.
CHILD_TIMEOUT = 120

SOURCE = """
#include <torch/csrc/stable/library.h>
#include <cstring>
#include "answer.h"
static void answer(StableIValue* stack, uint64_t, uint64_t) {
  const int64_t value = ANSWER;
  std::memcpy(stack, &value, sizeof value);
}
#define LIBRARY(name, m) STABLE_TORCH_LIBRARY(name, m)
#define LIBRARY_IMPL(name, key, m) STABLE_TORCH_LIBRARY_IMPL(name, key, m)
LIBRARY(KERNELPROOF_NAMESPACE, m) { m.def("answer() -> int"); }
LIBRARY_IMPL(KERNELPROOF_NAMESPACE, CompositeExplicitAutograd, m) { m.impl("answer", answer); }
"""

_UNBUILT = itertools.count(1000)

# Stands in for the compiler: notes each compilation, and holds it up as long as the file `hold` is there.
WRAPPER = """#!/bin/sh
here=$(dirname "$0")
case " $* " in *" -c "*)
  echo compile >> "$here/calls"
  while [ -e "$here/hold" ]; do sleep 0.05; done ;;
esac
exec {compiler} "$@"
"""

CHILD = """
import sys
from pathlib import Path
from kernels.build import Sources, load
print(load(Sources("answer", Path(sys.argv[1]), ("answer.cpp",), ("answer.h",)), "answer")())
"""


def write_sources(folder: Path, answer: str) -> Sources:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answer.cpp").write_text(SOURCE)
    (folder / "answer.h").write_text(f"#define ANSWER {answer}\n")
    return Sources("answer", folder, ("answer.cpp",), ("answer.h",))


def unbuilt_sources(folder: Path) -> Sources:
    """Sources that no other test builds: what is loaded stays loaded in this process, and would hide a failure."""
    return write_sources(folder, str(next(_UNBUILT)))


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own, under a path with a blank."""
    root = tmp_path / "a cache"
    monkeypatch.setenv(folder.VARIABLE, str(root))
    return root


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a compiler that can be watched and held up."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which(os.environ.get("CXX", "c++"))
    monkeypatch.setenv("CXX", str(write_program(folder / "held-c++", WRAPPER.format(compiler=real))))
    return folder


def start_child(sources: Sources) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", CHILD, str(sources.folder)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + CHILD_TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def failure(sources: Sources) -> str:
    with pytest.raises(BuildError) as raised:
        load(sources, "answer")
    return str(raised.value)


# ---- Building and finding ------------------------------------------------------------------------------------------


def test_different_sources_live_side_by_side_and_equal_ones_share_a_build(cache_folder: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    one = load(write_sources(tmp_path / "one two", "1"), "answer")
    two = load(write_sources(tmp_path / "another", "2"), "answer")
    copy = load(write_sources(tmp_path / "copy of one", "1"), "answer")
    assert (one(), two(), copy()) == (1, 2, 1)
    assert copy is one
    assert dict(os.environ) == before
    folders = [path for path in (cache_folder / "extensions").iterdir() if path.is_dir()]
    assert len(folders) == 2
    assert not [path for path in folders if ".partial-" in path.name]


def test_processes_that_build_at_once_compile_once_and_all_succeed(
    cache_folder: Path, compiler: Path, tmp_path: Path
) -> None:
    sources = write_sources(tmp_path / "sources", "4")
    children = [start_child(sources) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda child: child.communicate(timeout=CHILD_TIMEOUT), children))
    assert [(child.returncode, out) for child, (out, _) in zip(children, outputs, strict=True)] == [(0, "4\n")] * 4
    assert (compiler / "calls").read_text() == "compile\n"
    assert cache_folder.exists()


def test_a_killed_build_leaves_nothing_that_stops_or_misleads_the_next(
    cache_folder: Path, compiler: Path, tmp_path: Path
) -> None:
    sources = write_sources(tmp_path / "sources", "5")
    hold = compiler / "hold"
    hold.touch()
    child = start_child(sources)
    wait_for((compiler / "calls").exists)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=CHILD_TIMEOUT)
    extensions = cache_folder / "extensions"
    assert list(extensions.glob("*.lock"))
    assert list(extensions.glob("*.partial-*"))
    hold.unlink()
    assert load(sources, "answer")() == 5
    assert not list(extensions.glob("*.partial-*"))


def test_a_touched_lock_file_stops_nobody(tmp_path: Path) -> None:
    entry = Entry(tmp_path, "kernel-0", "kernel.so")
    (tmp_path / "kernel-0.lock").touch()
    with entry.locked():
        pass


def test_a_held_lock_is_waited_for_within_bounds_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.TIMEOUT_VARIABLE, "0.1")
    entry = Entry(tmp_path, "kernel-0", "kernel.so")
    with entry.locked(), pytest.raises(BuildError) as raised, Entry(tmp_path, "kernel-0", "kernel.so").locked():
        pass
    message = str(raised.value)
    assert str(tmp_path / "kernel-0.lock") in message
    assert f"process {os.getpid()}" in message
    assert cache.TIMEOUT_VARIABLE in message
    with entry.locked():
        pass


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_lock_timeout_that_is_no_number_of_seconds_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.TIMEOUT_VARIABLE, text)
    with pytest.raises(BuildError, match=cache.TIMEOUT_VARIABLE):
        cache.lock_timeout()


def test_a_library_that_is_not_whole_is_not_found(tmp_path: Path) -> None:
    entry = Entry(tmp_path, "kernel-0", "kernel.so")

    def publish() -> None:
        with entry.locked(), entry.workplace() as folder:
            (folder / "built.so").write_bytes(b"machine code")
            entry.publish(folder, folder / "built.so")

    assert entry.finished() is None
    publish()
    library = entry.finished()
    assert library is not None
    assert library.read_bytes() == b"machine code"
    library.write_bytes(b"machine")
    assert entry.finished() is None
    publish()
    assert entry.finished() is not None


def test_the_key_follows_everything_that_shapes_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: Compiler("/usr/bin/c++", ("-march=native",), "gcc 12, avx2"))
    sources = write_sources(tmp_path, "1")
    keys = [build._plan(sources).key, build._plan(write_sources(tmp_path, "2")).key]
    keys.append(build._plan(Sources("answer", tmp_path, ("answer.cpp",), ("answer.h",), cpp_flags=("-g",))).key)
    keys.append(build._plan(Sources("other", tmp_path, ("answer.cpp",), ("answer.h",))).key)
    for changed in (("/usr/bin/c++", ("-march=native",), "gcc 13, avx2"), ("/usr/bin/c++", (), "gcc 12, avx2")):
        monkeypatch.setattr(build, "find_compiler", lambda changed=changed: Compiler(*changed))
        keys.append(build._plan(sources).key)
    monkeypatch.setattr(torch.version, "git_version", "another")
    keys.append(build._plan(sources).key)
    assert len(set(keys)) == len(keys)
    assert build._plan(sources).key == keys[-1]


def test_ninja_is_found_in_an_environment_that_is_not_activated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # An environment of its own: the one at hand has none where ninja was on PATH when it was made.
    ninja = tmp_path / "ninja"
    ninja.touch(mode=0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert str(tmp_path) in toolchain.find_ninja()
    assert shutil.which("ninja", path=os.pathsep.join(toolchain.find_ninja()))


# ---- Failing -------------------------------------------------------------------------------------------------------


def test_an_error_in_the_source_is_quoted_in_the_compilers_words(cache_folder: Path, tmp_path: Path) -> None:
    sources = write_sources(tmp_path / "sources", " + ".join(f"missing_{i}" for i in range(9)))
    message = failure(sources)
    assert "building answer: the source does not compile" in message
    assert "missing_0" in message
    assert message.count("error:") == MAX_QUOTED_ERRORS
    assert "answer.h" in message or "answer.cpp" in message
    assert "Traceback" not in message
    assert not list((cache_folder / "extensions").glob("*.partial-*"))


@pytest.mark.usefixtures("cache_folder")
def test_no_compiler_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    message = failure(unbuilt_sources(tmp_path / "sources"))
    assert "no C++ compiler" in message
    assert "build-essential" in message
    monkeypatch.setenv("CXX", "no-such-compiler")
    message = failure(unbuilt_sources(tmp_path / "sources"))
    assert "'no-such-compiler'" in message
    assert "CXX" in message


@pytest.mark.usefixtures("cache_folder")
@pytest.mark.parametrize(
    ("complaint", "problem", "remedy"),
    [
        ("fatal error: cannot execute 'cc1plus': execvp: No such file or directory", "cc1plus", "install g++"),
        ("sh: out of order", "does not work", "out of order"),
    ],
)
def test_a_compiler_that_does_not_work_says_why(
    complaint: str, problem: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_program(tmp_path / "c++", f'#!/bin/sh\necho "{complaint}" >&2\nexit 1\n')
    monkeypatch.setenv("CXX", str(program))
    message = failure(unbuilt_sources(tmp_path / "sources"))
    assert problem in message
    assert remedy in message


@pytest.mark.usefixtures("cache_folder")
def test_a_compiler_that_cannot_be_run_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(write_program(tmp_path / "c++", "#!/no/such/shell\n")))
    assert "cannot be run" in failure(unbuilt_sources(tmp_path / "sources"))


@pytest.mark.usefixtures("cache_folder")
def test_missing_ninja_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ninja" else found(name))
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "ninja" else f"/usr/bin/{name}")
    message = failure(unbuilt_sources(tmp_path / "sources"))
    assert "ninja is missing" in message
    assert "pip install ninja" in message


def test_a_cache_that_cannot_be_written_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "file"))
    message = failure(unbuilt_sources(tmp_path / "sources"))
    assert str(tmp_path / "file") in message
    assert folder.VARIABLE in message
    assert "\n" not in message


@pytest.mark.usefixtures("cache_folder")
def test_a_full_disk_is_said_to_be_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", no_space)
    sources = Sources("full", CHECKOUT / "kernels" / "cpu", ("binding.cpp",), ("simd.h",))
    assert "the disk is full" in failure(sources)
    monkeypatch.undo()
    assert "the disk is full" in str(explain("ccX.s: error: can't write: No space left on device"))


def test_torch_under_a_path_with_a_blank_is_said_to_be_the_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__file__", "/home/a user/venv/torch/__init__.py")
    with pytest.raises(BuildError, match="path with a blank"):
        toolchain.check_link_path()


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("x.cpp:1:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("x.cpp:1:10: fatal error: cstdint: No such file or directory", "build-essential"),
        ("x.cpp:3:10: fatal error: cuda_runtime_api.h: No such file or directory", "CUDA toolkit"),
        ("/usr/bin/ld: cannot find -lcudart: No such file or directory", "CUDA toolkit"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_70'", "TORCH_CUDA_ARCH_LIST"),
        ("host_config.h:151:2: error: #error -- unsupported GNU version!", "older compiler"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "MAX_JOBS"),
        ("Ninja is required to load C++ extensions (pip install ninja to get it)", "pip install ninja"),
        ("x.cpp:3:1: error: 'foo' was not declared in this scope", "'foo' was not declared"),
    ],
)
def test_a_tools_complaint_becomes_what_to_do(output: str, remedy: str) -> None:
    error = explain(f"FAILED: main.o \n[1/2] c++ -c main.cpp\n{output}\nninja: build stopped: subcommand failed.")
    assert remedy in str(error)


@pytest.mark.usefixtures("cache_folder")
def test_a_source_that_registers_nothing_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "empty.cpp").write_text("int nothing;\n")
    with pytest.raises(BuildError, match="registers no operator 'answer'"):
        load(Sources("empty", tmp_path, ("empty.cpp",)), "answer")


@pytest.mark.usefixtures("cache_folder")
def test_a_missing_source_is_one_message(tmp_path: Path) -> None:
    assert "gone.cpp cannot be read" in failure(Sources("gone", tmp_path, ("gone.cpp",)))


def test_windows_is_sent_to_wsl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert "WSL2" in failure(Sources("answer", tmp_path, ()))


def test_the_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(BuildError("ninja is missing", "pip install ninja", "words")))  # noqa: S301
    assert (error.problem, error.remedy, error.detail) == ("ninja is missing", "pip install ninja", "words")
    assert str(error) == "ninja is missing: pip install ninja\nwords"


# ---- CUDA ----------------------------------------------------------------------------------------------------------


def test_torch_without_cuda_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(BuildError, match="built without CUDA"):
        toolchain.find_cuda()


def test_a_missing_nvcc_names_the_toolkit_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(toolchain, "CUDA_HOMES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(BuildError, match=r"nvcc.* is missing: install the CUDA toolkit 13\.0"):
        toolchain.find_cuda()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(BuildError, match="CUDA_HOME"):
        toolchain.find_cuda()


def test_an_nvcc_of_another_major_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(BuildError, match=r"nvcc is of CUDA 12\.8\.93 .* torch of CUDA 13\.0"):
        toolchain.find_cuda()


@pytest.mark.parametrize(
    ("wanted", "gpus", "expected"),
    [
        ("", [(9, 0), (8, 0), (9, 0)], "8.0;9.0"),
        ("native", [(12, 0)], "12.0"),
        ("8.0 9.0+PTX", [(9, 0)], "8.0;9.0+PTX"),
        ("8.0+PTX", [(9, 0)], "8.0+PTX"),
        ("8.0", [(8, 6)], "8.0"),
        ("9.0a", [(9, 0)], "9.0a"),
        ("Hopper", [(9, 0)], "Hopper"),
        ("9.0", [], "9.0"),
    ],
)
def test_architectures_that_fit_are_taken(wanted: str, gpus: list[tuple[int, int]], expected: str) -> None:
    assert architectures(wanted, gpus) == expected


@pytest.mark.parametrize(
    ("wanted", "gpus", "words"),
    [
        ("", [], "no GPU is visible"),
        ("7.0", [(9, 0)], "does not cover the visible GPU of capability 9.0"),
        ("8.6", [(8, 0)], "does not cover"),
        ("9.0a", [(10, 0)], "does not cover"),
        ("sm_90", [(9, 0)], "'sm_90' is no architecture"),
        ("9", [(9, 0)], "'9' is no architecture"),
    ],
)
def test_architectures_that_do_not_fit_are_named(wanted: str, gpus: list[tuple[int, int]], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        architectures(wanted, gpus)
