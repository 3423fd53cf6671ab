"""`ci/page`: from any subset of the files to one page that stands alone and lets nothing through unescaped."""

import html.parser
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from ci import drawing, fakes, page, page_markdown, start
from ci.exits import OK, USAGE
from ci.gate_record import Contestant, Machine, to_json

EVIL = "<script>alert(1)</script>|`*![x](https://example.invalid/x.png)"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Tags(html.parser.HTMLParser):
    """Everything that a page is made of; a tag that is not closed in order is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and its attributes."""
        self.seen.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that is closed at once."""
        self.seen.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost tag."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the words between tags."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """All words."""
        return "".join(self.words)


class Files:
    """Reports in a folder, and a page made of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.runs.mkdir()

    def put(self, name: str, document: object) -> str:
        """Write a file; returns its path."""
        path = self.folder / name
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return str(path)

    def make(self, *words: str) -> tuple[Tags, str]:
        """The page as HTML and as Markdown."""
        out, summary = self.folder / "page.html", self.folder / "page.md"
        summary.unlink(missing_ok=True)
        chosen = [] if any(word.startswith("--runs") for word in words) else [f"--runs={self.runs}"]
        assert page.main([*words, *chosen, f"--html={out}", f"--summary={summary}", "--offline"]) == OK
        return Tags(out.read_text(encoding="utf-8")), summary.read_text(encoding="utf-8")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setenv("KERNELPROOF_CACHE", str(tmp_path / "cache"))
    return Files(tmp_path)


def two_runs(files: Files) -> None:
    for day, of_copy in ((1, 0.91), (2, 0.87)):
        timings = [fakes.timing(of_copy=of_copy, eager=0.3, compile=0.6), fakes.timing("16x65535", "bfloat16")]
        files.put(f"runs/000{day}_ci.json", fakes.stored_run(*timings, day=day))


def test_a_page_shows_the_verdict_the_finding_and_how_to_see_it_again(files: Files) -> None:
    document = fakes.report(fakes.candidate("rejected", cpu=fakes.target("rejected")), failed=1)
    tags, summary = files.make(f"--verify={files.put('v.json', document)}")
    for text in (tags.text, summary):
        assert "✗ rejected" in text
        assert "off by the factor 8" in text
        assert "ci/verify '--candidate=/some where/k.py' --target=cpu '--case=shape=4x8;seed=3'" in text
        assert "exit code 1" in text
    assert "cuda: no GPU" in tags.text


def test_a_page_names_no_folder_of_the_machine_that_made_it_and_says_where_its_commands_run(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.chdir(files.folder)
    candidates = {
        f"{fakes.CHECKOUT}/properties/mutants/zeros.py": "properties/mutants/zeros.py",
        f"{files.folder}/mine/kernel.py": "mine/kernel.py",
        "/home/somebody/kernels/fast.py": "~/kernels/fast.py",
        "/elsewhere/kernel.py": "/elsewhere/kernel.py",
    }
    for path, shown in candidates.items():
        finding = fakes.finding(f"{path}: line 3") | {"replay": f"/x/ci/verify --candidate={path} --case=a"}
        failed = {"name": "differential", "outcome": "failed", "examples": 1, "worst": {}, "findings": [finding]}
        document = fakes.report(fakes.candidate(cpu=fakes.target("rejected", properties=[failed])), failed=1)
        tags, summary = files.make(f"--verify={files.put('v.json', document)}", f"--gate={files.folder}/gone.json")
        assert f"ci/verify --candidate={shown} --case=a" in tags.text
        assert f"{shown}: line 3" in tags.text
        for text in (tags.text, summary):
            assert "run it at the root of a checkout of kernelproof" in text
            assert not any(each in text for each in (str(files.folder), str(fakes.CHECKOUT), "/home/somebody"))


def test_a_replay_on_a_page_keeps_the_limits_and_leaves_the_makers_cache_out(files: Files) -> None:
    replay = "/x/ci/verify --candidate=/k.py --cache-dir=/somewhere/cache --call-timeout=3 --case=a"
    failed = {"name": "one", "outcome": "failed", "examples": 1, "worst": {}}
    failed |= {"findings": [fakes.finding("it is 8 x") | {"replay": replay}]}
    document = fakes.report(fakes.candidate(cpu=fakes.target("rejected", properties=[failed])), failed=1)
    tags, summary = files.make(f"--verify={files.put('v.json', document)}")
    for text in (tags.text, summary):
        assert "ci/verify --candidate=/k.py --call-timeout=3 --case=a" in text
        assert "somewhere" not in text


def test_a_finding_of_several_properties_is_shown_once(files: Files) -> None:
    first = {"name": "one", "outcome": "failed", "examples": 1, "worst": {}, "findings": [fakes.finding("it is 8 x")]}
    other = {**first, "name": "three", "findings": [fakes.finding("it is 9 x")]}
    failed = [first, {**first, "name": "two"}, other]
    document = fakes.report(fakes.candidate(cpu=fakes.target("rejected", properties=failed)), failed=3)
    _, summary = files.make(f"--verify={files.put('v.json', document)}")
    assert "k on cpu, one and 1 more property: wrong-value: it is 8 x" in summary
    assert "k on cpu, three: wrong-value: it is 9 x" in summary
    assert summary.count("ci/verify '--candidate") == 2


def test_what_was_not_examined_is_not_counted_and_has_its_reason(files: Files) -> None:
    seen = {"name": "odd", "outcome": "passed", "examples": 9, "findings": [], "notes": {"a mean is rounded": 2}}
    out = {"name": "huge", "outcome": "not-examined", "examples": 0, "findings": [], "reason": "cuda only"}
    document = fakes.report(fakes.candidate(cpu=fakes.target(properties=[seen, out])))
    _, summary = files.make(f"--verify={files.put('v.json', document)}")
    assert "| k | cpu | **✓ accepted** | 1 | 9 |  |" in summary
    assert "| odd | **✓ passed** | 9 | a mean is rounded (2 cases) |" in summary
    assert "| huge | **○ not-examined** | 0 | cuda only |" in summary
    assert "- not-examined: huge of k on cpu: cuda only" in summary


def test_a_page_without_commands_does_not_speak_of_them(files: Files) -> None:
    tags, _ = files.make(f"--verify={files.put('v.json', fakes.report(fakes.candidate()))}")
    assert "root of a checkout" not in tags.text


def test_the_headline_says_who_is_rejected_and_who_is_not(files: Files) -> None:
    right = {**fakes.candidate("accepted", cpu=fakes.target("accepted")), "name": "right"}
    wrong = {**fakes.candidate("rejected", cpu=fakes.target("rejected")), "name": "wrong"}
    _, summary = files.make(f"--verify={files.put('v.json', fakes.report(right, wrong, failed=1))}")
    assert "1 accepted: right; 1 rejected: wrong on cpu" in summary


def test_what_was_named_and_cannot_be_read_is_said_on_the_terminal(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.make(f"--verify={files.folder / 'a slip.json'}")
    assert "kernelproof: not shown: correctness" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", ["nothing", "verify", "gate", "runs", "kills", "gone", "broken"])
def test_any_file_may_be_absent_and_the_page_says_which(files: Files, wanted: str) -> None:
    matrix = "| mutant | killed by |\n|---|---|\n| zeros | values |\n"
    words = {
        "verify": f"--verify={files.put('v.json', fakes.report(fakes.candidate()))}",
        "gate": f"--gate={files.put('g.json', to_json(fakes.gate(fakes.gate_case())))}",
        "kills": f"--kills={files.put('k.md', matrix)}",
        "gone": f"--verify={files.folder}/gone.json",
        "broken": f"--verify={files.put('broken.json', '{')}",
    }
    if wanted == "runs":
        two_runs(files)
    tags, summary = files.make(*([words[wanted]] if wanted in words else []))
    assert ("no stored run in" in tags.text) == (wanted != "runs")
    assert ("no report was named" in tags.text) == (wanted not in ("verify", "gone", "broken"))
    assert ("the gate: no record was named" in tags.text) == (wanted != "gate")
    assert ("the kill matrix: no file was named" in tags.text) == (wanted != "kills")
    assert ("there is no file" in tags.text) == (wanted == "gone")
    assert ("the report is no JSON" in tags.text) == (wanted == "broken")
    assert "Not shown" in summary


def evil_page(files: Files) -> tuple[Tags, str]:
    """A page of files that hold markup wherever text of others can stand."""
    finding = fakes.finding(EVIL) | {"kind": EVIL, "replay": f"ci/verify '--candidate={EVIL}' '--case={EVIL}'"}
    one = {"name": EVIL, "outcome": "failed", "examples": 1, "findings": [finding]}
    target = fakes.target("rejected", reason=EVIL, properties=[one], unsupported={EVIL: EVIL})
    candidate = fakes.candidate("rejected") | {"path": EVIL, "name": EVIL, "targets": {EVIL: target}}
    document = fakes.report(candidate, internal_errors=[EVIL], profile=EVIL, seed=EVIL)
    document["not_run"] = [{"what": EVIL, "why": EVIL}]
    document["environment"] = {"torch": EVIL, "gpu": EVIL}
    for day in (1, 2):
        timing = fakes.timing(candidate_name=EVIL, eager=0.5)
        files.put(f"runs/{day}&lt;b&gt;.json", fakes.stored_run(timing, gpu=EVIL, day=day, commit=EVIL))
    kills = f"{EVIL}\n\n| {EVIL} | x |\n|---|---|\n| {EVIL} | {EVIL} |\n"
    cases = [fakes.gate_case(EVIL, text=EVIL), fakes.gate_case(EVIL, "not-measured", reason="missing", text=EVIL)]
    machine = Machine(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, {EVIL: 1}, (EVIL,))
    both = Contestant(EVIL, EVIL, EVIL, EVIL)
    record = fakes.gate(*cases, machine=machine, candidate=both, base=both, notes=(EVIL,), internal_errors=(EVIL,))
    words = [f"--verify={files.put('v.json', document)}", f"--kills={files.put('k.md', kills)}"]
    words.append(f"--gate={files.put('g.json', to_json(record))}")
    return files.make(*words)


def test_nothing_that_a_file_holds_becomes_markup(files: Files) -> None:
    tags, summary = evil_page(files)
    names = {tag for tag, _ in tags.seen}
    assert "script" not in names
    assert "img" not in names
    assert EVIL in tags.text
    assert "<details><summary>Every property of &lt;script&gt;" in summary
    outside = re.sub(r"^```+sh\n.*?\n```+$", "", summary, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub("<details>.*", "", outside)
    assert "<script" not in outside
    assert "![" not in outside
    assert len(re.findall(r"(?<!\\)`", outside)) == 0
    for table in re.findall(r"(?:^\|.*\n)+", outside, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_a_reader_of_markdown_shows_what_a_file_holds_as_it_is(files: Files) -> None:
    markdown_it = pytest.importorskip("markdown_it", reason="rich brings the reader of Markdown, and is not installed")
    _, summary = evil_page(files)
    shown = Tags(markdown_it.MarkdownIt("commonmark").enable("table").render(summary))
    names = {tag for tag, _ in shown.seen}
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    assert names - tables <= {"h1", "h2", "h3", "p", "strong", "ul", "li", "details", "summary", "pre", "code"}
    assert EVIL in shown.text
    assert not re.search(r"\\[|`*!\[]", re.sub(r"`+sh.*?`+", "", shown.text))


def test_a_name_that_is_no_utf8_is_spelled(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    target = fakes.target("accepted", unsupported={"fp16": "OSError: no file k\udcff.bin"})
    candidate = fakes.candidate("accepted") | {"targets": {"cpu": target}}
    report = f"--verify={files.put('v.json', fakes.report(candidate))}"
    tags, summary = files.make(report)
    assert page.main(["--summary=-", report, "--offline"]) == OK
    for text in (tags.text, summary.replace("\\\\", "\\"), capsys.readouterr().out.replace("\\\\", "\\")):
        assert r"no file k\udcff.bin" in text


def test_a_page_loads_nothing_and_stands_alone(files: Files) -> None:
    two_runs(files)
    tags, _ = files.make(f"--verify={files.put('v.json', fakes.report(fakes.candidate()))}")
    assert not {"script", "link", "iframe", "object", "img"} & {tag for tag, _ in tags.seen}
    for _, attributes in tags.seen:
        assert not {"src", "srcset", "onload"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
    style = (fakes.CHECKOUT / "ci" / "page.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style
    policy = [each["content"] for tag, each in tags.seen if tag == "meta" and "http-equiv" in each]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_a_page_can_be_read_without_eyes(files: Files) -> None:
    two_runs(files)
    document = fakes.report(fakes.candidate("rejected", cpu=fakes.target("rejected")))
    tags, _ = files.make(f"--verify={files.put('v.json', document)}")
    identities = [each["id"] for _, each in tags.seen if "id" in each]
    assert len(identities) == len(set(identities))
    named = [word for _, each in tags.seen for word in each.get("aria-labelledby", "").split()]
    linked = [each["href"][1:] for _, each in tags.seen if each.get("href", "").startswith("#")]
    assert set(named) | set(linked) <= set(identities)
    levels = [int(tag[1]) for tag, _ in tags.seen if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in tags.seen
    assert all(each.get("scope") in ("col", "row") for tag, each in tags.seen if tag == "th")


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, by WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_read_on_its_paper() -> None:
    style = (fakes.CHECKOUT / "ci" / "page.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part)) for part in style.split("@media", 2)[:2])
    assert set(light) == set(dark)
    for colours in (light, dark):
        written = set(colours) - {"paper", "raised", "line"}
        # 4.5 is WCAG's level AA for text.
        assert all(contrast(colours[name], colours["paper"]) >= 4.5 for name in written)


def test_runs_of_other_devices_stand_apart(files: Files) -> None:
    two_runs(files)
    files.put("runs/0003_ci.json", fakes.stored_run(fakes.timing(of_copy=0.5), gpu="NVIDIA H200", day=3))
    tags, summary = files.make()
    assert "Speed on NVIDIA H200" in tags.text
    h100 = summary.partition("## Speed on NVIDIA H100")[2].partition("## Speed on NVIDIA H200")[0]
    assert "0.910 | 0.870" in h100
    assert "0.500" not in h100
    assert "No case was timed in two stored runs" in summary.partition("## Speed on NVIDIA H200")[2]


def test_a_summary_is_appended_to_or_printed(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    summary = files.folder / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    words = [f"--runs={files.runs}", "--offline"]
    assert page.main([f"--summary={summary}", *words]) == OK
    assert summary.read_text(encoding="utf-8").startswith("before\n# kernelproof: report")
    assert page.main(["--summary=-", *words]) == OK
    assert capsys.readouterr().out.startswith("# kernelproof: report")


def test_a_summary_that_is_too_long_is_cut_and_says_so(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(files)
    monkeypatch.setattr(page_markdown, "LONGEST", 900)
    _, summary = files.make()
    assert summary.endswith("*More does not fit into a job summary: the HTML page has all of it.*\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "nothing to write: name a file with --html=FILE or --summary=FILE"),
        (["--htlm=x"], "--htlm=x"),
        (["--no-plots", "--html=nowhere/page.html"], "nowhere/page.html: cannot be written: No such file"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_64(
    words: Sequence[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert start.main(["page", *words]) == USAGE
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_without_matplotlib_the_page_has_its_tables_and_says_how_to_get_the_plots(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(files)
    monkeypatch.setattr(drawing, "here", lambda: False)
    monkeypatch.setattr(drawing, "find_python", lambda *_, **__: (None, "matplotlib is not installed; do this"))
    tags, _ = files.make()
    assert "the plots: matplotlib is not installed; do this" in tags.text
    assert "svg" not in {tag for tag, _ in tags.seen}
    assert "0.870" in tags.text


def test_another_python_draws_once_and_looks_no_further(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(files)
    program = fakes.make_program(
        files.folder / "python", f"""printf '%s\\n' "$KERNELPROOF_PAGE_CHILD" "$@" > '{files.folder}/said'"""
    )
    monkeypatch.setattr(drawing, "here", lambda: False)
    monkeypatch.setattr(drawing, "find_python", lambda *_, **__: (program, ""))
    words = [f"--html={files.folder}/page.html", f"--runs={files.runs}"]
    assert page.main(words) == OK
    said = (files.folder / "said").read_text(encoding="utf-8")
    assert said.splitlines() == ["1", str(fakes.CHECKOUT / "ci" / "start.py"), "page", *words]
    monkeypatch.setenv(page.CHILD, "1")
    assert page.main(words) == OK
    assert "matplotlib is not installed" in (files.folder / "page.html").read_text(encoding="utf-8")


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        page.parse(["--help"])
    assert all(action.help for action in page.parser()._actions)
    assert "exit codes" in capsys.readouterr().out
