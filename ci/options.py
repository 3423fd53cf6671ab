"""The options of `ci/verify`: read, checked and put into the one form that pytest takes without a mistake.

Promise: every option can also be given by an environment variable, KERNELPROOF_<NAME>; a relative path counts
from the folder that the command was called in; each value travels as `--name=value`, since pytest takes the word
after a bare `--candidate` for a test path. What is wrong stops at once, before anything is set up.
"""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ci.exits import USAGE, Stop

TRUE, FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")

DESCRIPTION = """\
Judges whether a fused kernel computes the function of the eager model, on whatever this machine has. Makes an
environment in the user's cache folder first, if there is none yet (see KERNELPROOF_CACHE)."""

KEYWORD = (
    "only these properties: 'values', 'scale-by-two or odd', 'not leak' (a name that is none matches nothing, and the "
    "message lists them all). Words that are no property's name are looked for in the names of tests and of their "
    "files, as pytest does"
)

EPILOG = """\
Each option can be given by an environment variable instead: KERNELPROOF_ and its name in capitals, with _ for -,
as in KERNELPROOF_TARGET=cpu. Several candidates in KERNELPROOF_CANDIDATE are separated as in PATH. Besides:
  PYTHON             the Python to start from (3.11, 3.12 or 3.13); its torch is kept where it is 2.9 or newer
  KERNELPROOF_CACHE  folder for environments and builds; default: kernelproof in the user's cache folder

exit codes:
  0   every candidate is accepted
  1   a candidate is rejected, or a test failed
  64  the command was called wrongly: an unknown option, a file that is not there, a -k that no property matches
  69  nothing could be judged: a CUDA candidate without a GPU, an environment that cannot be made, a --case not run
  70  an internal error
  130, 143  interrupted from the keyboard; ended by SIGTERM: what it had started ends with it
"""


@dataclass(frozen=True)
class Options:
    """The options of one call, checked.

    Attributes:
        candidates: Absolute paths of the files and folders to judge; empty for the shipped kernel.
        passed: What pytest is given besides, each in one word.
        workers: The value for xdist's -n; None if nothing is said of it.
        report: Where the user wants the report; None for nowhere.
        junit: Where pytest writes its JUnit report; None for nowhere.
        cache: The cache folder named by an option; None for the default.
        offline: Download nothing.
    """

    candidates: tuple[Path, ...] = ()
    passed: tuple[str, ...] = ()
    workers: str | None = None
    report: Path | None = None
    junit: Path | None = None
    cache: Path | None = None
    offline: bool = False

    def pytest_arguments(self) -> list[str]:
        """The arguments for pytest, without the report's."""
        chosen = [f"--candidate={path}" for path in self.candidates]
        workers = [] if self.workers is None else [f"--numprocesses={self.workers}"]
        cache = [] if self.cache is None else [f"--cache-dir={self.cache}"]
        junit = [] if self.junit is None else [f"--junitxml={self.junit}"]
        return [*chosen, *self.passed, *workers, *cache, *junit]


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `Stop` with one line instead of printing its usage."""

    def error(self, message: str) -> NoReturn:
        """Raise `Stop` with this message and where to read on."""
        raise Stop(USAGE, f"{message}; {self.prog} --help lists the options")


def verify_parser() -> Parser:
    """The parser of `ci/verify`."""
    parser = Parser(
        prog="ci/verify",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = parser.add_argument_group("what is judged")
    what.add_argument(
        "--candidate",
        action="append",
        metavar="FILE",
        help="a file that defines ModelNew, or a folder of such files; may be repeated (default: the shipped kernel)",
    )
    what.add_argument(
        "--target",
        choices=["cuda", "cpu", "all"],
        help="where it is judged (default: the shipped kernel on all there is, others on cuda, without a GPU on cpu)",
    )
    what.add_argument("--require-gpu", action="store_true", default=None, help="no GPU is a failure")
    what.add_argument(
        "--require",
        action="append",
        metavar="NAME,...",
        help="also require these of every candidate, as of the shipped kernel: fp16, bf16, fp64, offset, strided, "
        "expanded, negated, nd, empty, accuracy, determinism, strides, errors, stream, devices, graph, threads, "
        "autograd, autocast, compile",
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--profile",
        metavar="NAME",
        help="examples a property: kp-quick (25), kp-default (100, the default) or kp-nightly (2000)",
    )
    how.add_argument("--case", metavar="PROPERTY:LINE", help="replay exactly one case, as a report printed it")
    how.add_argument("--hypothesis-seed", metavar="N", help="draw the same examples again")
    how.add_argument("-k", dest="keyword", metavar="EXPRESSION", help=KEYWORD)
    how.add_argument(
        "-n",
        "--numprocesses",
        dest="workers",
        metavar="N",
        help="judge in N processes at once, or 'auto' (default: one; one a target where the shipped kernel is judged "
        "on two of them, if there are four cores and pytest-xdist, and 0 for one)",
    )
    how.add_argument("--call-timeout", metavar="SECONDS", type=seconds, help="longest time of a call (default: 20)")
    how.add_argument(
        "--build-timeout",
        metavar="SECONDS",
        type=seconds,
        help="longest time to load, and for a first call of a kind, while compilers are at work (default: 300)",
    )
    how.add_argument(
        "--gpu-memory",
        choices=["auto", "pinned"],
        help="where inputs for a GPU lie: auto (in its own memory, where the driver can share it), or on the host",
    )
    how.add_argument(
        "--isolation", metavar="MODE", help="'none' is refused here: for debugging only, under pytest itself"
    )
    how.add_argument("-x", "--exitfirst", action="store_true", default=None, help="stop at the first failure")
    how.add_argument("-v", "--verbose", action="count", help="name every property as it runs")
    how.add_argument("-q", "--quiet", action="count", help="say less")
    where = parser.add_argument_group("files and set-up")
    where.add_argument("--report-json", metavar="FILE", help="also write the report there")
    where.add_argument("--junitxml", metavar="FILE", help="also write a JUnit report there, one test a property")
    where.add_argument("--cache-dir", metavar="DIR", help="folder for environments and builds (see KERNELPROOF_CACHE)")
    where.add_argument("--offline", action="store_true", default=None, help="download nothing")
    return parser


def seconds(text: str) -> str:
    """Check that `text` is a positive number; it is passed on as it was written."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return text


def parse_verify(arguments: Sequence[str], variables: Mapping[str, str], folder: Path) -> Options:
    """Read the options of `ci/verify`.

    Args:
        arguments: The command's arguments.
        variables: The environment variables.
        folder: What relative paths count from.

    Raises:
        Stop: With code 64 and a line that names what is wrong.
        SystemExit: After --help.
    """
    parser = verify_parser()
    given, unknown = parser.parse_known_args([*arguments_from(variables, parser), *arguments])
    if unknown:
        parser.error(describe_unknown(unknown[0], folder))
    if given.isolation == "none":
        raise Stop(
            USAGE, "--isolation=none is for debugging under pytest itself; ci/verify judges isolated candidates only"
        )
    if given.isolation not in (None, "process"):
        parser.error(f"--isolation={given.isolation}: unknown mode, expected process")
    if given.workers is not None and not re.fullmatch(r"\d+|auto|logical", given.workers):
        parser.error(f"-n {given.workers}: expected a number of processes, or 'auto'")
    valued = ("target", "profile", "case", "hypothesis_seed", "call_timeout", "build_timeout", "gpu_memory")
    passed = handed_on(given, valued)
    passed += [f"--require={names}" for names in given.require or []]
    passed += ["--require-gpu"] if given.require_gpu else []
    passed += ["-k", given.keyword] if given.keyword is not None else []
    passed += ["--exitfirst"] if given.exitfirst else []
    passed += ["-v"] * (given.verbose or 0) + ["-q"] * (given.quiet or 0)
    return Options(
        candidates=tuple(existing_candidate(text, folder) for text in given.candidate or []),
        passed=tuple(passed),
        workers=given.workers,
        report=None if given.report_json is None else writable_file("--report-json", given.report_json, folder),
        junit=None if given.junitxml is None else writable_file("--junitxml", given.junitxml, folder),
        cache=None if given.cache_dir is None else absolute(given.cache_dir, folder),
        offline=bool(given.offline),
    )


def handed_on(given: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Those of the named options that were given, as arguments again."""
    return [f"--{name.replace('_', '-')}={getattr(given, name)}" for name in names if getattr(given, name) is not None]


def arguments_from(variables: Mapping[str, str], parser: argparse.ArgumentParser) -> list[str]:
    """The arguments that the environment variables stand for, to be read before the command's own."""
    found: list[str] = []
    for action in parser._actions:
        option = next((text for text in action.option_strings if text.startswith("--") and text != "--help"), None)
        if option is None or variable_of(option) not in variables:
            continue
        name, value = variable_of(option), variables[variable_of(option)]
        if action.nargs == 0:
            if value.lower() not in (*TRUE, *FALSE):
                raise Stop(USAGE, f"{name}={value}: expected 1 or 0")
            found += [option] if value.lower() in TRUE else []
        elif option == "--candidate":
            found += [f"{option}={path}" for path in value.split(os.pathsep) if path]
        elif value:
            found.append(f"{option}={value}")
    return found


def variable_of(option: str) -> str:
    """The environment variable of an option: KERNELPROOF_REPORT_JSON for --report-json."""
    return "KERNELPROOF_" + option.removeprefix("--").replace("-", "_").upper()


def without_options(variables: Mapping[str, str], parser: argparse.ArgumentParser) -> dict[str, str]:
    """The environment variables less those that stand for options: they are passed on as options."""
    own = {variable_of(text) for action in parser._actions for text in action.option_strings if text.startswith("--")}
    return {name: value for name, value in variables.items() if name not in own}


def describe_unknown(word: str, folder: Path) -> str:
    """What is wrong with an argument that no option takes."""
    if word.startswith("-"):
        return f"unknown option {word.split('=')[0]}"
    if (folder / word).exists():
        return f"unexpected argument {word} (did you mean --candidate={word}?)"
    return f"unexpected argument {word}"


def absolute(text: str, folder: Path) -> Path:
    """The absolute path that `text` names, counted from `folder`; links are left as they are."""
    return Path(os.path.normpath(folder / Path(text).expanduser()))


def existing_candidate(text: str, folder: Path) -> Path:
    """The absolute path of a candidate, which must be a file or a folder with Python files in it."""
    path = absolute(text, folder)
    if path.is_dir():
        if not any(path.glob("*.py")):
            raise Stop(
                USAGE, f"--candidate={text}: no Python file in the folder {path}; name a file that defines ModelNew"
            )
    elif not path.is_file():
        raise Stop(
            USAGE, f"--candidate={text}: there is no file {path}; name a file that defines ModelNew, or a folder"
        )
    return path


def writable_file(option: str, text: str, folder: Path) -> Path:
    """The absolute path of a file to write, as an option names it; its folder must be there."""
    path = absolute(text, folder)
    if path.is_dir() or not path.parent.is_dir():
        raise Stop(USAGE, f"{option}={text}: cannot write a file {path}; name one in a folder that is there")
    return path
