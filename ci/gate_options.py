"""The options of `ci/gate`: read, checked, and put into the form that pytest takes.

Promise: as `ci.options`: every option can be given by an environment variable, too; relative paths count from the
folder that the command was called in; what is wrong stops at once.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.exits import USAGE, Stop
from ci.gate_cases import COMMITTED
from ci.options import Parser, absolute, arguments_from, describe_unknown, handed_on, seconds, writable_file

SHIPPED = Path(__file__).resolve().parent.parent / "kernels" / "l1_norm.py"

DESCRIPTION = """\
Decides whether a kernel is still as fast as it was: times it and its base in turns, in one run, beside a copy of the
same bytes, and comes to one verdict with one exit code. Makes an environment in the user's cache folder first, if there
is none yet, as ci/verify does. Builds and measures on a GPU in a minute or two; results of random rounds are verified.

The base is, unless one of --base, --against and --stored names it, the merge base of HEAD with the main branch (of
origin/HEAD, origin/main, origin/master, main, master the first that is there): what the change would be merged into. On
the main branch itself it is HEAD where the kernel's folder has changes that are not committed, else HEAD's parent. It
is looked for in the git repository of the candidate's file, laid out in a git worktree in the cache folder, and loaded
beside the candidate in a process of its own. Equal sources are named as such (A/A)."""

EPILOG = """\
verdict of a case:
  slower, faster  two batches of rounds in a row say so, all prepared anew between them: the median of the paired
                  ratios is beyond the minimum effect, and beyond what the copy differs from itself, and its confidence
                  interval lies above (below) 1; the interval is as sure as the number of cases asks for
  same            the interval lies within the minimum effect
  undecided       neither, after all batches that are allowed, or that fit into the time of a case
  not-measured    with a reason: missing, renamed, skipped, deselected, disabled, no-baseline, no-gpu, another-gpu,
                  no-memory, invalid (a wrong result, or a time that cannot be true), failed, busy (see below)
The worst case is the gate's verdict: slower, then not-measured, then undecided.

Two gates at once on one card (or on one CPU) would falsify each other: the second waits for the first, and says so;
after 15 minutes its cases are not measured (busy). They know of each other by the cache folder.

Each option can be given by an environment variable instead: KERNELPROOF_GATE_ and its name in capitals, with _ for -,
as in KERNELPROOF_GATE_BASE=main. PYTHON and KERNELPROOF_CACHE are as for ci/verify.

exit codes:
  0   no case is slower, all were measured and decided
  1   a case is slower
  64  the command was called wrongly; -k matches no case
  69  not measured: no GPU, no baseline, a baseline of another GPU, an expected case that is missing or not measured;
      with -k always, unless a case is slower or nothing matches: a part is no gate
  70  an internal error, or no record
  75  undecided: the machine is too restless; try again
  130, 143  interrupted from the keyboard; ended by SIGTERM
"""


@dataclass(frozen=True)
class Options:
    """The options of one call, checked.

    Attributes:
        candidate: The file that is judged.
        base: A git ref; None for the default.
        against: A file to compare with; None for a git ref.
        stored: A stored run to compare with; "" for none.
        target: "cuda" or "cpu".
        cases: The list of expected cases.
        keyword: Only the cases whose name matches this expression; "" for all.
        passed: What pytest is given besides, each in one word.
        report: Where the user wants the record; None for nowhere.
        junit: Where pytest writes its JUnit report; None for nowhere.
        cache: The cache folder named by an option; None for the default.
        offline: Download nothing.
    """

    candidate: Path = SHIPPED
    base: str | None = None
    against: Path | None = None
    stored: str = ""
    target: str = "cuda"
    cases: Path = COMMITTED
    keyword: str = ""
    passed: tuple[str, ...] = ()
    report: Path | None = None
    junit: Path | None = None
    cache: Path | None = None
    offline: bool = False


def gate_parser() -> Parser:
    """The parser of `ci/gate`."""
    parser = Parser(
        prog="ci/gate",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = parser.add_argument_group("what is compared")
    what.add_argument("--candidate", metavar="FILE", help="a file that defines ModelNew (default: the shipped kernel)")
    base = what.add_mutually_exclusive_group()
    base.add_argument("--base", metavar="REF", help="compare with the candidate's file as of this git commit")
    base.add_argument(
        "--against",
        metavar="FILE",
        help="compare with any file that defines ModelNew: another kernel, properties/honest/eager.py, .../compiled.py",
    )
    base.add_argument(
        "--stored",
        metavar="ID",
        help="compare with a run of pytest -m benchmark --benchmark-save=NAME, by number or file, each through the "
        "copy of its own run; needs the same GPU model. Less sure than a base that is measured in the same run",
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--target", choices=["cuda", "cpu"], help="where to measure (default: cuda; on cpu it is wall time)"
    )
    how.add_argument(
        "--minimum-effect", metavar="X", type=share, help="the least effect that counts: 0.03 or 3%% (default: 3%%)"
    )
    how.add_argument(
        "--cases",
        metavar="FILE",
        help="measure the cases of this list, TOML as in ci/baselines/cases.toml (the default)",
    )
    how.add_argument(
        "-k",
        dest="keyword",
        metavar="EXPRESSION",
        help="only the cases whose name matches: their verdicts are shown, and the others are deselected, so that this "
        "is not a gate and never ends with 0",
    )
    how.add_argument("--call-timeout", metavar="SECONDS", type=seconds, help="for one round of a contestant")
    how.add_argument("--build-timeout", metavar="SECONDS", type=seconds, help="for building a contestant")
    how.add_argument("-v", "--verbose", action="count", help="name every case as it runs")
    where = parser.add_argument_group("files and set-up")
    where.add_argument("--report-json", metavar="FILE", help="also write the record there (ci/gate_record.py reads it)")
    where.add_argument("--junitxml", metavar="FILE", help="also write a JUnit report there, one test a case")
    where.add_argument("--cache-dir", metavar="DIR", help="folder for environments, builds and bases")
    where.add_argument("--offline", action="store_true", default=None, help="download nothing")
    return parser


def share(text: str) -> str:
    """Check that `text` is a share such as 0.03 or 3%; it is passed on as it was written."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(%?)", text)
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1, such as 0.03 or 3%")
    return text


def parse_gate(arguments: Sequence[str], variables: Mapping[str, str], folder: Path) -> Options:
    """Read the options of `ci/gate`.

    Args:
        arguments: The command's arguments.
        variables: The environment variables.
        folder: What relative paths count from.

    Raises:
        Stop: With code 64 and a line that names what is wrong.
        SystemExit: After --help.
    """
    parser = gate_parser()
    named = {f"KERNELPROOF_{name.removeprefix(PREFIX)}": value for name, value in own(variables).items()}
    given, unknown = parser.parse_known_args([*arguments_from(named, parser), *arguments])
    if unknown:
        parser.error(describe_unknown(unknown[0], folder))
    junit = None if given.junitxml is None else writable_file("--junitxml", given.junitxml, folder)
    valued = ("minimum_effect", "call_timeout", "build_timeout")
    passed = handed_on(given, valued)
    passed += ["-k", given.keyword] if given.keyword else []
    passed += [f"--junitxml={junit}"] if junit is not None else []
    # The table says what the single failures would; an error of the gate itself is in the record.
    passed += ["-v"] * given.verbose if given.verbose else ["-q", "--tb=no", "-rN", "-oconsole_output_style=classic"]
    return Options(
        candidate=SHIPPED if given.candidate is None else existing("--candidate", given.candidate, folder),
        base=given.base,
        against=None if given.against is None else existing("--against", given.against, folder),
        stored=given.stored or "",
        target=given.target or "cuda",
        cases=COMMITTED if given.cases is None else existing("--cases", given.cases, folder),
        keyword=given.keyword or "",
        passed=tuple(passed),
        report=None if given.report_json is None else writable_file("--report-json", given.report_json, folder),
        junit=junit,
        cache=None if given.cache_dir is None else absolute(given.cache_dir, folder),
        offline=bool(given.offline),
    )


# Of the environment variables that stand for options; those of `ci/verify` mean other things (several candidates).
PREFIX = "KERNELPROOF_GATE_"


def own(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of `ci/gate`."""
    return {name: value for name, value in variables.items() if name.startswith(PREFIX)}


def existing(option: str, text: str, folder: Path) -> Path:
    """The absolute path of a file that must be there."""
    path = absolute(text, folder)
    if path.is_dir():
        kind, pattern = ("TOML", "*.toml") if option == "--cases" else ("Python", "*.py")
        inside = sorted(each.name for each in path.glob(pattern))
        held = f"name one of those in it, such as {inside[0]}" if inside else f"the folder holds no {kind} file"
        raise Stop(USAGE, f"{option}={text}: {path} is a folder, and a gate takes one {kind} file: {held}")
    if not path.is_file():
        raise Stop(USAGE, f"{option}={text}: there is no file {path}")
    return path
