"""Writes a page as Markdown for a job summary.

Promise: all text is escaped, so that a name or a finding changes nothing around it and shows no picture. Drawings are
left out, which the HTML page has.
"""

import re
from html import escape

from ci.page_content import Block, Cell, Code, Figure, Fold, Gallery, Items, Page, Section, Table, Text, Verdict

# All that GitHub's Markdown gives a meaning to inside a line (`$` is mathematics), and what makes a line a list.
_MEANINGFUL = re.compile(r"[\\`*_\[\]#!|~@$]|^[-+=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
# Characters. GitHub takes 1 MiB of a step's summary and drops all of a longer one.
LONGEST = 900_000


def markdown(page: Page) -> str:
    """The whole text; what does not fit into a job summary is cut off at the end of a section, which is said."""
    head = [f"# {plain(page.title)}", plain(page.origin), *(_text(each) for each in page.verdicts)]
    parts = ["\n\n".join(head)]
    for section in page.sections:
        text = _section(section)
        if sum(map(len, parts)) + len(text) > LONGEST:
            parts.append("*More does not fit into a job summary: the HTML page has all of it.*")
            break
        parts.append(text)
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _NUMBERED.sub(r"\1\\\2", _MEANINGFUL.sub(r"\\\g<0>", escape(" ".join(text.split()), quote=False)))


def _section(section: Section) -> str:
    inside = [text for text in map(_block, section.blocks) if text]
    return "\n\n".join([f"{'#' * (section.level + 1)} {plain(section.title)}", *inside]) if inside else ""


def _block(block: Block) -> str:
    match block:
        case Text():
            return _text(block)
        case Code():
            return _code(block.line)
        case Items():
            return "\n".join(f"- {plain(item)}" for item in block.items)
        case Table():
            return _table(block)
        case Figure() | Gallery():
            return ""
        case Fold():
            inside = [text for text in map(_block, block.blocks) if text]
            if not inside:
                return ""
            # A line of HTML: Markdown means nothing in it.
            summary = f"<details><summary>{escape(' '.join(block.title.split()))}</summary>"
            return "\n\n".join([summary, *inside, "</details>"])


def _text(text: Text) -> str:
    return f"{_verdict(text.verdict)} {plain(text.words)}" if text.verdict else plain(text.words)


def _code(line: str) -> str:
    """A fenced line; the fence is longer than any in it."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    one_line = re.sub("[\r\n]", " ", line)
    return f"{fence}sh\n{one_line}\n{fence}"


def _verdict(verdict: Verdict) -> str:
    return f"**{plain(verdict.sign)} {plain(verdict.word)}**"


def _table(table: Table) -> str:
    def cell(content: Cell) -> str:
        return _verdict(content) if isinstance(content, Verdict) else plain(content)

    rule = ["---:" if number in table.figures else "---" for number in range(len(table.head))]
    rows = [[*map(plain, table.head)], rule, *([cell(each) for each in row] for row in table.rows)]
    return "\n".join([f"{plain(table.caption)}\n", *(f"| {' | '.join(row)} |" for row in rows)])
