"""What a build needs from this machine: a C++ compiler, ninja, and for device code the CUDA toolkit.

Each finder returns what it found with all that tells it from another (that goes into the cache key) or raises a
BuildError that names the missing thing and what brings it. Nothing is looked for at import.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from .errors import BuildError
from .explain import explain

# Seconds for one question to a compiler. Answers take 0.02 s; a wrapper that waits for a server must not hang us.
PROBE_TIMEOUT = 30.0

_INSTALL_COMPILER = "install g++ (Debian and Ubuntu: apt install build-essential; macOS: xcode-select --install)"

# Where CUDA toolkits are installed; {} is torch.version.cuda.
CUDA_HOMES = ("/usr/local/cuda-{}", "/usr/local/cuda", "/opt/cuda")

# Flags that turn on what this CPU can do, in order of preference: x86 and GCC anywhere, Clang on some aarch64, none.
_NATIVE_FLAGS: tuple[tuple[str, ...], ...] = (("-march=native",), ("-mcpu=native",), ())


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler that answered.

    Attributes:
        path: Where it is, absolute.
        flags: For this CPU and for torch's thread pool.
        identity: Digest of everything it predefines under these flags: its version, its target, the CPU's features.
    """

    path: str
    flags: tuple[str, ...]
    identity: str


@dataclass(frozen=True)
class CudaToolkit:
    """A CUDA toolkit that fits torch.

    Attributes:
        home: The folder that holds bin/nvcc and include/cuda_runtime.h.
        version: Of nvcc, such as "13.0.88".
        architectures: What to build for, as in TORCH_CUDA_ARCH_LIST.
    """

    home: Path
    version: str
    architectures: str


def _ask(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(
            f"{command[0]} did not answer within {PROBE_TIMEOUT:.0f} s", f"run it by hand: {' '.join(command)}"
        ) from None
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run ({error.strerror})", _INSTALL_COMPILER) from None


def _find_program() -> str:
    wanted = os.environ.get("CXX")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise BuildError(
                f"there is no C++ compiler {wanted!r}, which the environment variable CXX names",
                "set CXX to the name or path of one program, without arguments, or unset it",
            )
        return str(Path(found).absolute())
    for name in ("c++", "g++", "clang++"):
        if found := shutil.which(name):
            return str(Path(found).absolute())
    raise BuildError("no C++ compiler is on PATH (looked for c++, g++, clang++)", _INSTALL_COMPILER)


def _openmp_flags(macros: str) -> tuple[str, ...]:
    # at::parallel_for is a header: without OpenMP in *our* compilation it runs on one thread. The runtime is not linked
    # but found at load time in torch's own libgomp: there is one thread pool, and torch.set_num_threads rules it.
    # Clang would emit calls into another runtime than the one torch's Linux wheels carry: one thread there.
    if "__clang__" not in macros:
        return ("-fopenmp",)
    return ("-Xpreprocessor", "-fopenmp") if sys.platform == "darwin" else ()


def find_compiler() -> Compiler:
    """The C++ compiler of this machine: $CXX, else c++, g++ or clang++ on PATH.

    Raises:
        BuildError: There is none, or it does not work.
    """
    path = _find_program()
    answer = None
    for native in _NATIVE_FLAGS:
        answer = _ask([path, *native, "-dM", "-E", "-x", "c++", os.devnull])
        if answer.returncode == 0:
            break
    assert answer is not None
    if answer.returncode != 0:
        failure = explain(answer.stderr)
        raise BuildError(f"the C++ compiler {path} does not work ({failure.problem})", failure.remedy, failure.detail)
    flags = (*native, *_openmp_flags(answer.stdout))
    identity = hashlib.sha256("\n".join((str(Path(path).resolve()), *flags, answer.stdout)).encode()).hexdigest()
    return Compiler(path, flags, identity)


def find_ninja() -> list[str]:
    """Folders to put before PATH so that ninja is found; empty where it is on PATH already.

    An environment that is not activated has ninja beside its interpreter, and the ninja package knows its own folder.

    Raises:
        BuildError: ninja is in none of these places.
    """
    folders = [str(Path(sys.executable).parent)]
    if importlib.util.find_spec("ninja") is not None:
        import ninja

        folders.append(str(ninja.BIN_DIR))
    folders = [folder for folder in folders if shutil.which("ninja", path=folder)]
    if not folders and shutil.which("ninja") is None:
        raise BuildError("ninja is missing", f"{sys.executable} -m pip install ninja")
    return folders


def check_link_path() -> None:
    """Stop where torch's own link command cannot work.

    Raises:
        BuildError: torch lies under a path with a blank; torch.utils.cpp_extension passes it to the linker unquoted.
    """
    library_folder = Path(torch.__file__).parent / "lib"
    if any(character.isspace() for character in str(library_folder)):
        raise BuildError(
            f"torch is installed under a path with a blank ({library_folder}), where extensions cannot be linked",
            "make the Python environment at a path without blanks",
        )


def _toolkit_home() -> Path:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(variable):
            home = Path(value)
            if not (home / "bin" / "nvcc").exists():
                raise BuildError(
                    f"there is no bin/nvcc in {home}, which the environment variable {variable} names",
                    f"install the CUDA toolkit {torch.version.cuda} and set {variable} to its folder, or unset it",
                )
            return home
    nvcc = shutil.which("nvcc")
    places = [Path(nvcc).resolve().parents[1]] if nvcc else []
    places += [Path(place.format(torch.version.cuda)) for place in CUDA_HOMES]
    for place in places:
        if (place / "bin" / "nvcc").exists() and (place / "include" / "cuda_runtime.h").exists():
            return place
    raise BuildError(
        "nvcc, the CUDA compiler, is missing",
        f"install the CUDA toolkit {torch.version.cuda} (torch.version.cuda), put nvcc on PATH or set CUDA_HOME",
    )


def find_cuda() -> CudaToolkit:
    """The CUDA toolkit to compile device code with, and the architectures to compile for.

    Raises:
        BuildError: torch has no CUDA, the toolkit is missing or of another major version, or the architectures are
            unknown or do not cover a visible GPU.
    """
    if torch.version.cuda is None:
        raise BuildError(
            f"this torch ({torch.__version__}) is built without CUDA", "install a CUDA build of torch to run on a GPU"
        )
    home = _toolkit_home()
    answer = _ask([str(home / "bin" / "nvcc"), "--version"])
    match = re.search(r"release (\d+)\.\d+, V([\d.]+)", answer.stdout)
    if answer.returncode != 0 or match is None:
        raise BuildError(f"{home / 'bin' / 'nvcc'} does not work", "install it anew", answer.stdout + answer.stderr)
    if match[1] != torch.version.cuda.split(".")[0]:
        raise BuildError(
            f"nvcc is of CUDA {match[2]} ({home}), torch of CUDA {torch.version.cuda}",
            f"install the CUDA toolkit {torch.version.cuda} and set CUDA_HOME to it",
        )
    return CudaToolkit(home, match[2], architectures(os.environ.get("TORCH_CUDA_ARCH_LIST", ""), visible_gpus()))


def visible_gpus() -> list[tuple[int, int]]:
    """Compute capability of each GPU that torch sees."""
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())]


def architectures(wanted: str, gpus: list[tuple[int, int]]) -> str:
    """The architectures to build for, as torch wants them in TORCH_CUDA_ARCH_LIST.

    Args:
        wanted: What the user set that variable to; may be empty or "native".
        gpus: Compute capability of each visible GPU.

    Returns:
        The list; without one from the user, exactly the visible GPUs.

    Raises:
        BuildError: There is nothing to go by, an entry is no architecture, or a visible GPU is not covered.
    """
    if wanted.strip() in ("", "native"):
        if not gpus:
            raise BuildError(
                "no GPU is visible and TORCH_CUDA_ARCH_LIST is not set",
                "make a GPU visible (CUDA_VISIBLE_DEVICES), or name what to build for: TORCH_CUDA_ARCH_LIST=9.0",
            )
        return ";".join(f"{major}.{minor}" for major, minor in sorted(set(gpus)))
    entries = [entry for entry in re.split(r"[;\s]+", wanted) if entry]
    for entry in entries:
        if not re.fullmatch(r"\d+\.\d[af]?(\+PTX)?|[A-Z][a-z]+(\+Tegra|\+Tesla)?", entry):
            raise BuildError(
                f"TORCH_CUDA_ARCH_LIST={wanted!r}: {entry!r} is no architecture", "expected entries like 9.0 or 8.0+PTX"
            )
    named = any(entry[0].isalpha() for entry in entries)
    for gpu in gpus:
        if not named and not any(_covers(entry, gpu) for entry in entries):
            raise BuildError(
                f"TORCH_CUDA_ARCH_LIST={wanted!r} does not cover the visible GPU of capability {gpu[0]}.{gpu[1]}",
                f"add {gpu[0]}.{gpu[1]} to it, or unset it to build for what is there",
            )
    return ";".join(entries)


def _covers(entry: str, gpu: tuple[int, int]) -> bool:
    # Machine code runs on its own major version from its minor on ("a": on exactly that one); PTX on anything newer.
    number = re.match(r"(\d+)\.(\d)([af]?)", entry)
    assert number is not None
    built = (int(number[1]), int(number[2]))
    if number[3] == "a":
        return built == gpu
    return (built[0] == gpu[0] and built[1] <= gpu[1]) or (entry.endswith("+PTX") and built <= gpu)
