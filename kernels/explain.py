"""From what a compiler, a linker or ninja wrote to a BuildError that says what to do.

Known complaints (a missing header or library, a full disk, memory run out, an architecture that nvcc does not know) are
answered with what brings the missing thing. Anything else is an error in the source: the first errors are quoted in the
compiler's own words and the rest, mostly consequences of the first, is left out.
"""

import re

from .errors import BuildError

# Errors quoted from a compiler. The first is the cause nearly always; one C++ error can bring hundreds more.
MAX_QUOTED_ERRORS = 3

_ERROR_LINE = re.compile(r"\b(fatal error|error|fatal|undefined reference|ld returned|cannot find)\b", re.IGNORECASE)

# What the tool says, what that means, what brings it.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"No space left on device",
        "the disk is full",
        "free some space, or set KERNELPROOF_CACHE (and TMPDIR) to a folder on another disk",
    ),
    (
        r"Python\.h: No such file",
        "the header Python.h is missing",
        "install the development files of this Python (Debian and Ubuntu: apt install python3-dev)",
    ),
    (
        r"(cannot execute|error trying to exec) .*cc1plus",
        "the C++ half of the compiler is missing (cc1plus)",
        "install g++ (Debian and Ubuntu: apt install build-essential)",
    ),
    (
        r"fatal error: .*\b(algorithm|cstdint|vector|cstring|atomic|std(lib|io)\.h|omp\.h)\b.*(No such|not found)",
        "a header of the C++ standard library is missing",
        "install g++ and the C library's headers (Debian and Ubuntu: apt install build-essential)",
    ),
    (
        r"cuda_runtime(_api)?\.h: No such file",
        "the header cuda_runtime.h is missing",
        "install the CUDA toolkit that belongs to torch.version.cuda and set CUDA_HOME to it",
    ),
    (
        r"cannot find -lcudart",
        "the library libcudart is missing",
        "install the CUDA toolkit that belongs to torch.version.cuda and set CUDA_HOME to it",
    ),
    (
        r"Unsupported gpu architecture|is not a supported|Unknown CUDA arch",
        "nvcc does not know an architecture of the list",
        "set TORCH_CUDA_ARCH_LIST to what the GPU is and the CUDA toolkit knows, for example 9.0",
    ),
    (
        r"unsupported GNU version|unsupported clang version",
        "this C++ compiler is too new for this nvcc",
        "set CC and CXX to an older compiler that the CUDA toolkit supports",
    ),
    (
        r"Killed signal terminated program|virtual memory exhausted|out of memory allocating",
        "the compiler ran out of memory",
        "free memory, or set MAX_JOBS=1",
    ),
    (
        r"Ninja is required|ninja: (command )?not found",
        "ninja is missing",
        "pip install ninja",
    ),
)


def quote_errors(output: str) -> str:
    """The first errors in a build's output, each with the line after it (the source line), in the tool's own words."""
    lines = output.splitlines()
    quoted: list[str] = []
    found = 0
    for index, line in enumerate(lines):
        # ninja echoes the command, which holds words like -Werror; the compiler's lines are no commands.
        if not _ERROR_LINE.search(line) or line.startswith(("ninja:", "FAILED:", "/bin/sh -c", "[")) or " -c " in line:
            continue
        found += 1
        if found > MAX_QUOTED_ERRORS:
            quoted.append("... (more errors follow)")
            break
        quoted += lines[index : index + 2]
    return "\n".join(quoted or lines[-10:])


def explain(output: str) -> BuildError:
    """The error that a failed build's output amounts to.

    Args:
        output: Everything the tools wrote, or the text of torch's exception, which contains it.

    Returns:
        The error to raise; its detail quotes the tool.
    """
    quoted = quote_errors(output)
    for pattern, problem, remedy in _KNOWN:
        if re.search(pattern, output):
            return BuildError(problem, remedy, quoted)
    return BuildError("the source does not compile", "the compiler's first errors say where", quoted)
