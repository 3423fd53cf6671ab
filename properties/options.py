"""The options of a run: one table from which pytest's options, their help and their environment variables are made.

A value comes from the command line, else from the environment variable, else from the table. What cannot be meant is a
`UsageError` with one line.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci import wording
from kernels.folder import VARIABLE as CACHE_VARIABLE
from kernels.folder import cache_folder as default_cache

from . import catalogue, profiles, source_text
from .cases import Case, parse
from .examination import Property
from .limits import Limits
from .subject import REQUIRABLE
from .timing import COMPILE, EAGER

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("cpu", "cuda")
#: What a benchmark can time beside the copy.
PEERS = (EAGER, COMPILE)


class UsageError(Exception):
    """An option that cannot be meant; the message is one line that says what is allowed."""


@dataclass(frozen=True)
class Option:
    """One option of the command line.

    Attributes:
        flag: with its dashes.
        metavar: what its value is called in the help; "" for a switch.
        help: one sentence, without the environment variable.
        default: as text, as on the command line.
        repeatable: whether it may be given more than once.
    """

    flag: str
    metavar: str
    help: str
    default: str = ""
    repeatable: bool = False

    @property
    def name(self) -> str:
        """As an attribute."""
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that stands in for it."""
        return CACHE_VARIABLE if self.flag == "--cache-dir" else f"KERNELPROOF_{self.name.upper()}"


OPTIONS = (
    Option(
        "--candidate",
        "FILE",
        "a Python file that defines ModelNew, or a folder of them; may be repeated; the variable separates several as "
        "PATH does; default: the kernel that ships here",
        repeatable=True,
    ),
    Option(
        "--target",
        "TARGET",
        "where to judge: cuda, cpu, or all (candidates other than the shipped one: cuda, without a GPU cpu)",
        "all",
    ),
    Option("--require-gpu", "", "a machine without a usable GPU is a failure"),
    Option(
        "--require",
        "NAME,...",
        f"make these compulsory for every candidate: {', '.join(REQUIRABLE)}",
        repeatable=True,
    ),
    Option("--profile", "NAME", f"how thoroughly to look: {', '.join(profiles.PROFILES)}", profiles.DEFAULT),
    Option("--case", "PROPERTY:LINE", "replay exactly one case, as a report prints it"),
    Option("--report-json", "FILE", "write the whole report there"),
    Option("--call-timeout", "SECONDS", "longest time of one call of the candidate", "20"),
    Option(
        "--build-timeout",
        "SECONDS",
        "longest time to load, and for a first call of a kind, while compilers are at work",
        "300",
    ),
    Option("--cache-dir", "FOLDER", "where extensions are built and kept; default: the user's cache folder"),
    Option(
        "--peers",
        "NAME,...",
        "what a benchmark times beside the copy: eager, compile (on cuda only: its tuning takes seconds a shape)",
        "eager,compile",
    ),
    Option(
        "--gpu-memory",
        "WAY",
        "how a candidate on a GPU gets its input: auto (memory of the GPU, shared through CUDA IPC, where that works), "
        "or pinned (memory of the host)",
        "auto",
    ),
    Option("--isolation", "MODE", "process, or none to run the candidate inside pytest, for debugging only", "process"),
)


@dataclass(frozen=True)
class Options:
    """The options of a run, read and checked; fields as in `OPTIONS`.

    Beside them `helpers`, files that were left out, `unreadable`, files of a folder that cannot be read, with why, and
    `found`, candidates that a folder holds and nobody has named.
    """

    candidates: tuple[Path, ...]
    shipped_only: bool
    targets: tuple[str, ...]
    require_gpu: bool
    require: frozenset[str]
    profile: profiles.Profile
    case: tuple[Property, Case] | None
    report_json: Path | None
    limits: Limits
    cache: Path
    isolated: bool
    peers: tuple[str, ...]
    pinned: bool
    helpers: tuple[Path, ...] = ()
    unreadable: tuple[tuple[Path, str], ...] = ()
    found: frozenset[Path] = frozenset()


def read(given: Callable[[str], object], environ: Mapping[str, str], start: Path, shipped: Path) -> Options:
    """Read all options.

    Args:
        given: the command line's value of an option name: None, a string, True, or a list of strings.
        environ: environment variables.
        start: the folder that relative paths are meant from.
        shipped: the default candidate.

    Raises:
        UsageError: see the class.
    """
    texts = {option.name: _texts(option, given(option.name), environ) for option in OPTIONS}

    def one(name: str) -> str:
        return texts[name][-1] if texts[name] else ""

    named = [start / Path(text).expanduser() for text in texts["candidate"]]
    files = [path for each in named for path in _candidates(each)]
    helpers = [path for each in named if each.is_dir() for path in source_text.helpers(_candidates(each))]
    helpers = [path for path in helpers if files.count(path) == 1 and len(helpers) < len(files)]
    candidates = tuple(path for path in files if path not in helpers)
    return Options(
        candidates=tuple(dict.fromkeys(candidates)) or (shipped,),
        shipped_only=not candidates,
        targets=TARGETS if one("target") == "all" else (_choice("--target", one("target"), ("all", *TARGETS)),),
        require_gpu=bool(one("require_gpu")),
        require=frozenset(
            _choice("--require", name, REQUIRABLE)
            for text in texts["require"]
            for name in filter(None, (part.strip() for part in text.split(",")))
        ),
        profile=profiles.PROFILES[_choice("--profile", one("profile"), tuple(profiles.PROFILES))],
        # One that is empty was meant to be something: a script's variable, say.
        case=_case(one("case")) if one("case") or given("case") == "" else None,
        report_json=start / one("report_json") if one("report_json") else None,
        limits=Limits(
            build=_seconds("--build-timeout", one("build_timeout")),
            call=_seconds("--call-timeout", one("call_timeout")),
        ),
        cache=cache_folder(one("cache_dir"), environ, start),
        isolated=_choice("--isolation", one("isolation"), ("process", "none")) == "process",
        peers=tuple(
            dict.fromkeys(
                _choice("--peers", name, PEERS) for name in (part.strip() for part in one("peers").split(",")) if name
            )
        ),
        pinned=_choice("--gpu-memory", one("gpu_memory"), ("auto", "pinned")) == "pinned",
        helpers=tuple(dict.fromkeys(helpers)),
        unreadable=tuple({path: why for each in named if each.is_dir() for path, why in _odd(each)}.items()),
        found=frozenset(candidates).difference(*(_candidates(each) for each in named if not each.is_dir())),
    )


def cache_folder(text: str, environ: Mapping[str, str], start: Path) -> Path:
    """The folder for builds: ``text`` if given, else the user's cache folder."""
    if text:
        named = start / Path(text).expanduser()
        try:
            named.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--cache-dir={named}: {error.strerror}") from None
        return named
    return default_cache(environ, Path.home(), sys.platform)


def _texts(option: Option, given: object, environ: Mapping[str, str]) -> list[str]:
    if isinstance(given, list) and given:
        return [str(each) for each in given]
    if given and not isinstance(given, list):
        return [str(given)]
    variable = environ.get(option.variable, "")
    if not option.metavar:
        return [variable] if variable not in ("", "0") else []
    if variable:
        return variable.split(os.pathsep) if option.flag == "--candidate" else [variable]
    return [option.default] if option.default else []


def _candidates(path: Path) -> list[Path]:
    if path.is_dir():
        found = [each for each in _in_folder(path) if not _unreadable(each)]
        if not found:
            odd = "".join(f"; {each.name} {why}" for each, why in _odd(path))
            raise UsageError(f"--candidate={path}: the folder holds no .py file{odd and ' that can be read'}{odd}")
        return [_named(each) for each in found]
    if not os.path.lexists(path):
        raise UsageError(f"--candidate={path}: no such file or folder")
    if why := _unreadable(path):
        raise UsageError(f"--candidate={path}: it {why}")
    return [_named(path)]


def _in_folder(folder: Path) -> list[Path]:
    return sorted(each for each in folder.glob("*.py") if each.name != "__init__.py")


def _odd(folder: Path) -> list[tuple[Path, str]]:
    """What a folder holds that has the name of a candidate and cannot be read, with why."""
    return [(_named(each), why) for each in _in_folder(folder) if (why := _unreadable(each))]


def _unreadable(path: Path) -> str:
    """Why a candidate's file cannot be read; "" where it can. What is no file is not opened: a pipe never answers."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return f"{wording.UNREAD}: it is {'a folder' if stat.S_ISDIR(mode) else 'no file'}"
        path.open("rb").close()
    except OSError as error:
        dangling = isinstance(error, FileNotFoundError) and path.is_symlink()
        return f"{wording.UNREAD}: {'a link that leads nowhere' if dangling else error.strerror or error}"
    return ""


def _named(path: Path) -> Path:
    """The absolute path as it was given: what a link leads to may have another name, and other files beside it."""
    return path.parent.resolve() / path.name


def _choice(flag: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise UsageError(f"{flag}={text} is not one of {', '.join(allowed)}")
    return text


def _seconds(flag: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UsageError(f"{flag}={text} is not a number of seconds above 0")
    return seconds


def _case(text: str) -> tuple[Property, Case]:
    name, colon, line = text.partition(":")
    if not colon or name not in catalogue.CATALOGUE:
        raise UsageError(f"--case={text}: expected PROPERTY:LINE with a property of {', '.join(catalogue.CATALOGUE)}")
    try:
        return catalogue.CATALOGUE[name], parse(line)
    except ValueError as error:
        raise UsageError(f"--case={text}: {error}") from None
