"""Compiles a kernel at its first use and loads it: torch's `load_inline` with our own key, lock and errors.

Promise: a library is used only if it was built from exactly these sources, flags, torch, Python, compiler and CPU
features. All of that goes into one key, and the key names the folder in the cache, the extension and the namespace of
its operators: two versions of a kernel live side by side in one process, equal ones share one build. Several processes
and threads may ask at once. Every way a build can fail raises BuildError.

Sources are copied into the build folder, so a checkout under a path with blanks compiles like any other. They register
their operators themselves, under the macro KERNELPROOF_NAMESPACE, and include only the headers of torch that they need:
`load_inline`'s own preamble and bindings take several times as long to compile.
"""

import contextlib
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch

from .cache import Entry, disk_error
from .errors import BuildError
from .explain import explain
from .folder import cache_folder
from .toolchain import Compiler, CudaToolkit, check_link_path, find_compiler, find_cuda, find_ninja

# Part of every key: raise it when the way of building changes in a manner that no other part of the key shows.
KEY_VERSION = 1

# Hexadecimal digits of the key in names: 80 bits, no two builds on a machine ever share them.
KEY_DIGITS = 20

# -O2 compiles in 2/3 of the time of -O3 and is as fast here: the loops that matter are vectors in the source already.
# Hidden symbols: two versions in one process must not see each other's. -Wno-psabi: our vectors cross no ABI.
CPP_FLAGS = ("-O2", "-fvisibility=hidden", "-Wno-psabi")
CUDA_FLAGS = ("-O3", "--compiler-options=-fvisibility=hidden")


@dataclass(frozen=True)
class Sources:
    """What makes one extension: files of one folder.

    Attributes:
        name: Says what it is, in folder names and errors; letters, digits and underscores.
        folder: Where the files lie.
        cpp: Files compiled by the C++ compiler, as one translation unit in this order.
        headers: Files that the others include by name.
        cuda: Files compiled by nvcc, as one translation unit in this order; none for an extension without device code.
        cpp_flags: Further flags for the C++ compiler.
        cuda_flags: Further flags for nvcc.
    """

    name: str
    folder: Path
    cpp: tuple[str, ...]
    headers: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    cpp_flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()

    def texts(self, names: tuple[str, ...]) -> list[str]:
        """The content of some of the files.

        Raises:
            BuildError: One cannot be read.
        """
        try:
            return [(self.folder / name).read_text(encoding="utf-8") for name in names]
        except OSError as error:
            raise BuildError(
                f"the source {error.filename} cannot be read ({error.strerror})", "restore it in the checkout"
            ) from None


@dataclass(frozen=True)
class _Plan:
    """One build, decided: what with, under which key."""

    sources: Sources
    compiler: Compiler
    cuda: CudaToolkit | None
    key: str

    @property
    def namespace(self) -> str:
        return f"kernelproof_{self.sources.name}_{self.key}"

    @property
    def entry(self) -> Entry:
        return Entry(
            cache_folder(os.environ, Path.home(), sys.platform) / "extensions",
            f"{self.sources.name}-{self.key}",
            f"{self.namespace}.so",
        )


class _LoadInline(Protocol):
    def __call__(
        self,
        *,
        name: str,
        cpp_sources: list[str],
        cuda_sources: list[str] | None,
        functions: None,
        extra_cflags: list[str],
        extra_cuda_cflags: list[str],
        build_directory: str,
        with_cuda: bool,
        is_python_module: bool,
        no_implicit_headers: bool,
    ) -> str: ...


def load(sources: Sources, operator: str) -> "torch._ops.OpOverloadPacket":
    """The operator that `sources` register, built first if it has to be.

    Args:
        sources: What to build.
        operator: Name under which they register it in the namespace KERNELPROOF_NAMESPACE.

    Returns:
        torch.ops.<namespace>.<operator>; the namespace is `.name`-able through its qualified name.

    Raises:
        BuildError: In one message, what is missing or wrong and what brings it.
    """
    if sys.platform == "win32":
        raise BuildError("Windows is not supported natively", "run it under WSL2")
    plan = _plan(sources)
    loaded = _registered(plan.namespace, operator)
    if loaded is not None:
        return loaded
    library = plan.entry.finished()
    if library is None:
        check_link_path()
        with plan.entry.locked():
            # Another process, thread or copy of this package may have been first.
            library = plan.entry.finished()
            if library is None and _registered(plan.namespace, operator) is None:
                _build(plan)
    if library is not None:
        _load_library(library)
    loaded = _registered(plan.namespace, operator)
    if loaded is None:
        raise BuildError(
            f"the extension {sources.name} registers no operator {operator!r}",
            "register it under the namespace KERNELPROOF_NAMESPACE in the C++ source",
        )
    return loaded


def _plan(sources: Sources) -> _Plan:
    compiler = find_compiler()
    cuda = find_cuda() if sources.cuda else None
    files = dict.fromkeys((*sources.cpp, *sources.headers, *sources.cuda))
    parts = {
        "version": KEY_VERSION,
        "name": sources.name,
        "units": [sources.cpp, sources.cuda],
        "files": dict(zip(files, sources.texts(tuple(files)), strict=True)),
        "flags": [CPP_FLAGS, sources.cpp_flags, compiler.flags, CUDA_FLAGS, sources.cuda_flags],
        "compiler": compiler.identity,
        "cuda": [str(cuda.home), cuda.version, cuda.architectures, os.environ.get("CC", "")] if cuda else None,
        "torch": [str(torch.__version__), torch.version.git_version, torch.version.cuda, torch.version.hip],
        "abi": [torch.compiled_with_cxx11_abi(), sysconfig.get_config_var("SOABI"), sys.version_info[:2]],
        "platform": [sys.platform, platform.machine(), platform.libc_ver()],
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return _Plan(sources, compiler, cuda, digest[:KEY_DIGITS])


def _registered(namespace: str, operator: str) -> "torch._ops.OpOverloadPacket | None":
    try:
        return cast("torch._ops.OpOverloadPacket", getattr(getattr(torch.ops, namespace), operator))
    except AttributeError:
        return None


def _load_library(library: Path) -> None:
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise BuildError(
            f"the built library {library} cannot be loaded", "delete its folder and run again", str(error)
        ) from None


def _build(plan: _Plan) -> None:
    """Compile, load and publish. Hold the entry's lock."""
    entry = plan.entry
    search_path = find_ninja()
    try:
        with entry.workplace() as folder:
            for name, text in zip(plan.sources.headers, plan.sources.texts(plan.sources.headers), strict=True):
                (folder / name).write_text(text, encoding="utf-8")
            entry.publish(folder, _compile(plan, folder, search_path))
    except OSError as error:
        raise disk_error(error, entry.root) from None


def _compile(plan: _Plan, folder: Path, search_path: list[str]) -> Path:
    sources = plan.sources
    namespace = f"-DKERNELPROOF_NAMESPACE={plan.namespace}"
    try:
        with _environment(plan, search_path) as load_inline:
            return Path(
                load_inline(
                    name=plan.namespace,
                    cpp_sources=_with_names(sources, sources.cpp),
                    cuda_sources=_with_names(sources, sources.cuda) or None,
                    functions=None,
                    extra_cflags=[*CPP_FLAGS, *plan.compiler.flags, *sources.cpp_flags, namespace],
                    extra_cuda_cflags=[*CUDA_FLAGS, *sources.cuda_flags, namespace],
                    build_directory=str(folder),
                    with_cuda=plan.cuda is not None,
                    is_python_module=False,
                    no_implicit_headers=True,
                )
            )
    except ImportError as error:
        raise BuildError(
            f"torch.utils.cpp_extension needs the Python package {error.name}",
            f"{sys.executable} -m pip install {error.name}",
        ) from None
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise _named(explain(str(error)), sources) from None


def _named(error: BuildError, sources: Sources) -> BuildError:
    return BuildError(f"building {sources.name}: {error.problem}", error.remedy, error.detail)


def _with_names(sources: Sources, names: tuple[str, ...]) -> list[str]:
    # So that the compiler's errors name our files, not the one that load_inline makes of them.
    return [f'#line 1 "{name}"\n{text}' for name, text in zip(names, sources.texts(names), strict=True)]


@contextlib.contextmanager
def _environment(plan: _Plan, search_path: list[str]) -> Iterator[_LoadInline]:
    """What `load_inline` reads from the process: PATH, the compilers, the architectures. Put back afterwards."""
    log = logging.getLogger("torch.utils.cpp_extension")
    level = log.level
    # It warns at import that a CUDA toolkit or a GPU is missing, also to those who build for the CPU.
    log.setLevel(logging.ERROR)
    try:
        from torch.utils import cpp_extension  # half a second and setuptools: only to build
    finally:
        log.setLevel(level)
    changes = {
        "PATH": os.pathsep.join((*search_path, os.environ.get("PATH", os.defpath))),
        "CXX": plan.compiler.path,
        # We know the compiler already; torch would ask it three times more, and log what it thinks of its name.
        "TORCH_DONT_CHECK_COMPILER_ABI": "1",
    }
    if plan.cuda is not None:
        changes["TORCH_CUDA_ARCH_LIST"] = plan.cuda.architectures
        changes["CUDA_HOME"] = str(plan.cuda.home)
    # Copies of this package under other names share os.environ with us, so the lock is kept where all find it.
    lock = cast("threading.Lock", cpp_extension.__dict__.setdefault("_kernelproof_environment_lock", threading.Lock()))
    with lock:
        before = {name: os.environ.get(name) for name in changes}
        home = cpp_extension.CUDA_HOME
        os.environ.update(changes)
        if plan.cuda is not None:
            cpp_extension.CUDA_HOME = str(plan.cuda.home)
        try:
            yield cast("_LoadInline", cpp_extension.load_inline)
        finally:
            cpp_extension.CUDA_HOME = home
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
