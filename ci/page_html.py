"""Writes a page as one HTML file that stands alone.

Promise: nothing is loaded from anywhere (a policy in the page forbids it, and scripts with it), all text is escaped,
every figure has a name and a description, and nothing is said by colour alone. It follows the reader's light or dark
setting and fits a phone. Only `Figure.svg`, which `ci.page_plots` draws, goes in as it is.
"""

from html import escape
from pathlib import Path

from ci.page_content import Block, Cell, Code, Figure, Fold, Gallery, Items, Page, Section, Table, Text, Verdict

STYLE = Path(__file__).resolve().with_name("page.css")
# The page needs its own style and nothing else: whatever got into it could load nothing and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(page: Page) -> str:
    """The whole file."""
    numbered = [(f"part-{number}", section) for number, section in enumerate(page.sections)]
    links = [
        f'<li><a href="#{name}">{escape(section.title)}</a></li>' for name, section in numbered if section.level == 1
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(page.title)}</title>",
            f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>",
            "</head>",
            "<body>",
            "<header>",
            f"<h1>{escape(page.title)}</h1>",
            f"<p>{escape(page.origin)}</p>",
            *(_text(each, "headline") for each in page.verdicts),
            "</header>",
            f'<nav aria-label="Parts of this page"><ul>{"".join(links)}</ul></nav>',
            "<main>",
            *(_section(name, section) for name, section in numbered),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _section(name: str, section: Section) -> str:
    level = section.level + 1
    inside = "\n".join(_block(block) for block in section.blocks)
    heading = f'<h{level} id="{name}-title">{escape(section.title)}</h{level}>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}\n{inside}\n</section>'


def _block(block: Block) -> str:
    match block:
        case Text():
            return _text(block)
        case Code():
            return f'<pre tabindex="0"><code>{escape(block.line)}</code></pre>'
        case Items():
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
        case Table():
            return _table(block)
        case Figure():
            return _figure(block)
        case Gallery():
            return f'<div class="gallery">{"".join(_figure(figure) for figure in block.figures)}</div>'
        case Fold():
            inside = "\n".join(_block(each) for each in block.blocks)
            return f"<details><summary>{escape(block.title)}</summary>\n{inside}\n</details>"


def _text(text: Text, kind: str = "") -> str:
    head = f"{_verdict(text.verdict)} " if text.verdict else ""
    return f"<p{f' class={kind}' if kind else ''}>{head}{escape(text.words)}</p>"


def _verdict(verdict: Verdict) -> str:
    sign = f'<span aria-hidden="true">{verdict.sign}</span>'
    return f'<strong class="verdict {verdict.tone}">{sign} {escape(verdict.word)}</strong>'


def _table(table: Table) -> str:
    def cell(number: int, content: Cell) -> str:
        kind = ' class="figure"' if number in table.figures else ""
        inside = _verdict(content) if isinstance(content, Verdict) else escape(content)
        return f'<th scope="row"{kind}>{inside}</th>' if number == 0 else f"<td{kind}>{inside}</td>"

    head = "".join(
        f'<th scope="col"{" class=figure" if number in table.figures else ""}>{escape(name)}</th>'
        for number, name in enumerate(table.head)
    )
    rows = "\n".join(f"<tr>{''.join(cell(*each) for each in enumerate(row))}</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>"
    # A wide table scrolls by itself, and by keyboard: hence the tab stop and the name.
    opening = f'<div class="wide" role="region" tabindex="0" aria-label="{escape(table.caption)}">'
    return f"{opening}<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"


def _figure(figure: Figure) -> str:
    caption = f"<figcaption><strong>{escape(figure.title)}</strong> {escape(figure.words)}</figcaption>"
    return f"<figure>{figure.svg}{caption}</figure>"
