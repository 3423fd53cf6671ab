"""The report page: Markdown for a job summary and one HTML file that stands alone, from whatever reports there are.

It is a command of its own and no option of the others: a page shows what several of them left behind, and it has to be
written most of all when one of them failed. Promise: it decides nothing (its exit code says whether the page was
written), any file may be absent, and the page names what it does not show. `ci/page --help` explains every option.
"""

import argparse
import datetime
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ci import drawing, page_build, page_facts, page_html, page_markdown, page_paths, verify
from ci.exits import OK, USAGE, Stop
from ci.options import Parser, absolute
from ci.page_build import Drawer, Facts
from ci.page_facts import Missing, Read
from kernels.folder import cache_folder

DESCRIPTION = """\
Writes a page from the reports of ci/verify and ci/gate, the stored runs of pytest-benchmark and the kill matrix:
Markdown for a job summary, HTML for a browser. Any of them may be absent; the page says which."""

EPILOG = """\
Plots are drawn with matplotlib. Where the calling Python has none, a small environment of its own is made for it in the
cache folder; without one the page has its tables, and says how to get the plots.

exit codes: 0 the page is written; 64 called wrongly, or a file cannot be written; 70 internal error"""

# Set for the child that draws: it must not look for another Python again.
CHILD = "KERNELPROOF_PAGE_CHILD"


def parser() -> Parser:
    """The parser of `ci/page`."""
    made = Parser(
        prog="ci/page",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = made.add_argument_group("what is shown")
    what.add_argument(
        "--verify", action="append", metavar="FILE", help="a report of ci/verify --report-json; may be repeated"
    )
    what.add_argument("--gate", action="append", metavar="FILE", help="the record of a run of ci/gate; may be repeated")
    what.add_argument(
        "--runs", metavar="DIR", help="stored runs of pytest -m benchmark (default: .benchmarks of the checkout)"
    )
    what.add_argument(
        "--kills", metavar="FILE", help="the kill matrix, as ci/test --only=mutants --reports=DIR writes it"
    )
    where = made.add_argument_group("where it goes")
    where.add_argument("--html", metavar="FILE", help="write the page there, as one file that needs no other")
    where.add_argument(
        "--summary", metavar="FILE", help="append Markdown there, as to $GITHUB_STEP_SUMMARY; - is standard output"
    )
    where.add_argument("--no-plots", action="store_true", help="tables only")
    where.add_argument("--offline", action="store_true", help="download nothing")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run `ci/page` and return its exit code."""
    given = parse(arguments)
    facts = gather(given, Path.cwd())
    draws: Drawer | None = None
    undrawn = ""
    if given.html is None or not facts.runs:
        pass  # nothing to draw, or nowhere to show it
    elif given.no_plots:
        undrawn = "left out by --no-plots"
    elif drawing.here():
        draws = drawer()
    elif CHILD in os.environ:
        undrawn = "matplotlib is not installed"
    else:
        cache = cache_folder(os.environ, Path.home(), sys.platform)
        python, undrawn = drawing.find_python(verify.CHECKOUT, cache, offline=given.offline, say=verify.say)
        if python is not None:
            return draw_elsewhere(python, arguments)
    write(given, facts, draws, undrawn)
    return OK


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options.

    Raises:
        Stop: With code 64 and a line that names what is wrong.
    """
    made = parser()
    given = made.parse_args(arguments)
    if given.html is None and given.summary is None:
        made.error("nothing to write: name a file with --html=FILE or --summary=FILE")
    return given


def draw_elsewhere(python: Path, arguments: Sequence[str]) -> int:
    """Do the same in a Python that has matplotlib; its exit code."""
    command = [str(python), str(verify.CHECKOUT / "ci" / "start.py"), "page", *arguments]
    return subprocess.run(command, env={**os.environ, CHILD: "1"}, stdin=subprocess.DEVNULL, check=False).returncode


def drawer() -> Drawer:
    """What draws; only where matplotlib is."""
    from ci.page_plots import Plots

    return Plots()


def write(given: argparse.Namespace, facts: Facts, draws: Drawer | None, undrawn: str) -> None:
    """Put the page together and write it where it is wanted.

    Raises:
        Stop: A file cannot be written.
    """
    folder = Path.cwd()
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = page_build.build(facts, f"Made {when} by ci/page.", draws, undrawn)
    page = page_paths.portable(page, (verify.CHECKOUT, folder), Path.home())
    if given.html is not None:
        put("--html", absolute(given.html, folder), _utf8(page_html.html(page)), "w")
    if given.summary == "-":
        sys.stdout.write(_utf8(page_markdown.markdown(page)))
    elif given.summary is not None:
        put("--summary", absolute(given.summary, folder), _utf8(page_markdown.markdown(page)), "a")


def _utf8(text: str) -> str:
    """A text that can be written: what Python has for bytes that are no UTF-8, in a name or a message, is spelled."""
    return text.encode(errors="backslashreplace").decode()


def gather(given: argparse.Namespace, folder: Path) -> Facts:
    """Read all that was named, and the checkout's stored runs."""
    facts = Facts()
    for text in given.verify or []:
        _sort_in(page_facts.read_verify(absolute(text, folder)), facts.reports, facts.missing)
    if not given.verify:
        facts.missing.append(Missing("correctness", "no report was named; ci/verify --report-json=FILE writes one"))
    for text in given.gate or []:
        _sort_in(page_facts.read_gate(absolute(text, folder)), facts.gates, facts.missing)
    if not given.gate:
        facts.missing.append(Missing("the gate", "no record was named; ci/gate --report-json=FILE writes one"))
    runs = verify.CHECKOUT / ".benchmarks" if given.runs is None else absolute(given.runs, folder)
    facts.runs, unread = page_facts.read_runs(runs)
    facts.missing += unread
    if given.kills is None:
        how = "no file was named; ci/test --only=mutants --reports=DIR writes one"
        facts.missing.append(Missing("the kill matrix", how))
    else:
        _sort_in(page_facts.read_kills(absolute(given.kills, folder)), facts.kills, facts.missing)
    return facts


def _sort_in(found: Read | Missing, shown: list[Read], missing: list[Missing]) -> None:
    """Put what was named where it belongs. What cannot be shown is said on the terminal, too: it may be a slip."""
    if isinstance(found, Missing):
        sys.stderr.write(f"kernelproof: not shown: {found.what}: {found.why}\n")
        missing.append(found)
    else:
        shown.append(found)


def put(option: str, path: Path, text: str, mode: str) -> None:
    """Write a file, or append to it.

    Raises:
        Stop: It cannot be written.
    """
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Stop(USAGE, f"{option}={path}: cannot be written: {error.strerror}") from error
