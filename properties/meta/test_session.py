"""Options, seats, records and words: what a run was asked for, whom it judges where, and what is written down."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ci import report as reader
from ci import summary as verify_summary
from ci.exits import INTERNAL, NAMED_PYTHON, OK, REJECTED, STARTED_BY, UNAVAILABLE, USAGE

from .. import catalogue, contract, invariances, records, summary
from ..cases import parse
from ..examination import Examination, Worst
from ..findings import Finding, Kind
from ..l1_norm import L1_NORM
from ..limits import Limits
from ..operators import Metric
from ..options import ROOT, Options, UsageError, read
from ..process import Nursery
from ..records import Gathered, Record
from ..session import CONTACT, Session, seats
from ..subject import Subject
from ..targets import Machine
from .conftest import RIGHT, MakeSubject

MACHINE = Machine("3.12.1", "2.13.0", "some processor", "", "", "no CUDA device is visible")
GPU = replace(MACHINE, gpu="some card", driver="1.2", no_gpu="")
NOTHING: Mapping[str, str] = {}


def options(start: Path, environ: Mapping[str, str] = NOTHING, /, **given: object) -> Options:
    return read(given.get, environ, start, L1_NORM.shipped)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("class ModelNew: ...\n", encoding="utf-8")
    (tmp_path / "__init__.py").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_without_options_the_shipped_kernel_is_judged(here: Path) -> None:
    chosen = options(here)
    assert chosen.candidates == (L1_NORM.shipped,)
    assert (chosen.profile.name, chosen.isolated, chosen.require) == ("kp-default", True, frozenset())


def test_a_case_that_is_empty_was_meant_to_be_one(here: Path) -> None:
    with pytest.raises(UsageError, match=r"--case=: expected PROPERTY:LINE"):
        options(here, case="")
    assert options(here, {"KERNELPROOF_CASE": ""}).case is None


def test_a_candidate_is_a_file_or_a_folder_of_files(here: Path) -> None:
    both = (here / "one.py", here / "two.py")
    assert options(here, candidate=["one.py", "two.py", "one.py"]).candidates == both
    assert options(here, candidate=[str(here)]).candidates == both
    assert options(here.parent, {"KERNELPROOF_CANDIDATE": f"{both[0]}:{both[1]}"}).candidates == both
    assert options(here, {"KERNELPROOF_CANDIDATE": "nowhere"}, candidate=["two.py"]).candidates == (both[1],)


def test_what_the_candidates_of_a_folder_import_is_none_itself(here: Path) -> None:
    (here / "one.py").write_text("from helper import f\n", encoding="utf-8")
    (here / "helper.py").write_text("def f(x): return x\n", encoding="utf-8")
    chosen = options(here, candidate=["."])
    assert chosen.candidates == (here / "one.py", here / "two.py")
    assert seats(chosen, MACHINE)[1][-1] == ("helper.py", "no ModelNew is seen in its text, and others import it")
    for named in (["helper.py"], [".", "helper.py"]):
        assert here / "helper.py" in options(here, candidate=named).candidates
    (here / "helper.py").write_text("class ModelNew: pass\n", encoding="utf-8")
    assert here / "helper.py" in options(here, candidate=["."]).candidates


def odd_entries(folder: Path) -> dict[str, str]:
    """What nobody can read and has a candidate's name, and what is said of each."""
    (folder / "dangling.py").symlink_to(folder / "nowhere")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    said = {"dangling.py": "a link that leads nowhere", "folder.py": "it is a folder", "pipe.py": "it is no file"}
    return {name: f"cannot be read: {why}" for name, why in said.items()} | {"loop.py": "cannot be read: Too many"}


def test_what_cannot_be_read_is_left_out_of_its_folder_and_named(here: Path) -> None:
    odd = odd_entries(here)
    chosen = options(here, candidate=["."])
    assert chosen.candidates == (here / "one.py", here / "two.py")
    told = dict(seats(chosen, MACHINE)[1])
    for name, why in odd.items():
        assert told[name].startswith(why)


def test_what_cannot_be_read_is_refused_where_it_is_named(here: Path) -> None:
    for name, why in odd_entries(here).items():
        says = why if name != "folder.py" else "the folder holds no .py file"
        with pytest.raises(UsageError, match=re.escape(says)):
            options(here, candidate=[name])
    for name in ("one.py", "two.py"):
        (here / name).unlink()
    with pytest.raises(UsageError, match=r"no \.py file that can be read; dangling.py cannot be read: a link that"):
        options(here, candidate=["."])


def test_a_file_that_may_not_be_read_says_so(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Callable[..., object] = Path.open

    def refused(self: Path, *given: str) -> object:
        if self.name == "one.py":
            raise PermissionError(13, "Permission denied")
        return opened(self, *given)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(UsageError, match=r"one\.py: it cannot be read: Permission denied"):
        options(here, candidate=["one.py"])


HELPER = '"""What the Model of both needs."""\ndef f(x): return x\n'


@pytest.mark.parametrize(
    ("imports", "helper", "left_out"),
    [
        ("from . import helper", HELPER, True),
        ("import os, helper", HELPER, True),
        ("from .helper import f", HELPER, True),
        ("import {folder}.helper as h", HELPER, True),
        ("from {folder} import helper", HELPER, True),
        ("def g():\n    import helper", HELPER, True),
        ("import torch.helper", HELPER, False),
        ("from ..helper import f", HELPER, False),
        ("'''\nimport helper\n'''", HELPER, False),
        ("import helper", "def f(:\n", False),
        ("import helper", "\0", False),
        ("import helper", "from base import Model as ModelNew\n", False),
        ("import helper", "from base import *\n", False),
        ("import helper", "if True:\n    ModelNew = type('M', (), {})\n", False),
        ("import helper", "def f():\n    Model = 1\n", True),
    ],
)
def test_a_helper_is_imported_by_another_file_and_has_no_model(
    imports: str, helper: str, left_out: bool, here: Path
) -> None:
    (here / "one.py").write_text(f"{imports.format(folder=here.name)}\nclass ModelNew: ...\n", encoding="utf-8")
    (here / "helper.py").write_text(helper, encoding="utf-8")
    chosen = options(here, candidate=["."])
    assert chosen.helpers == ((here / "helper.py",) if left_out else ())
    assert (here / "helper.py" in chosen.candidates) is not left_out


def test_every_option_has_an_environment_variable(here: Path) -> None:
    chosen = options(
        here,
        {
            "KERNELPROOF_TARGET": "cpu",
            "KERNELPROOF_PROFILE": "kp-quick",
            "KERNELPROOF_REQUIRE": "fp16, strided",
            "KERNELPROOF_CALL_TIMEOUT": "2.5",
            "KERNELPROOF_CACHE": "builds",
            "KERNELPROOF_REQUIRE_GPU": "1",
            "KERNELPROOF_CASE": "odd:shape=2x3",
            "KERNELPROOF_REPORT_JSON": "out.json",
        },
    )
    assert (chosen.targets, chosen.profile.name, chosen.require) == (
        ("cpu",),
        "kp-quick",
        frozenset({"fp16", "strided"}),
    )
    assert (chosen.limits.call, chosen.cache, chosen.require_gpu) == (2.5, here / "builds", True)
    assert chosen.case == (invariances.ODD, parse("shape=2x3"))
    assert chosen.report_json == here / "out.json"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"candidate": ["nowhere.py"]}, "--candidate="),
        ({"candidate": ["empty"]}, "the folder holds no .py file"),
        ({"target": "tpu"}, "--target=tpu is not one of all, cpu, cuda"),
        ({"profile": "ci"}, "--profile=ci is not one of kp-quick"),
        ({"require": ["fp8"]}, "--require=fp8 is not one of fp32"),
        ({"call_timeout": "soon"}, "--call-timeout=soon is not a number of seconds above 0"),
        ({"build_timeout": "-1"}, "--build-timeout=-1 is not a number of seconds above 0"),
        ({"isolation": "some"}, "--isolation=some is not one of process, none"),
        ({"case": "shape=2x3"}, "expected PROPERTY:LINE with a property of shapes"),
        ({"case": "odd:shape=2"}, "--case=odd:shape=2: shape=2 is not two or more sizes"),
    ],
)
def test_what_cannot_be_meant_is_one_line(here: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(here, **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def seated(here: Path, machine: Machine, **given: object) -> list[tuple[str, str]]:
    found, _ = seats(options(here, **given), machine)
    return [(seat.path.stem, seat.target) for seat in found]


def test_the_shipped_kernel_sits_on_every_target_and_others_on_one(here: Path) -> None:
    assert seated(here, MACHINE) == [("l1_norm", "cpu")]
    assert sorted(seated(here, GPU)) == [("l1_norm", "cpu"), ("l1_norm", "cuda")]
    assert seated(here, MACHINE, candidate=["one.py"]) == [("one", "cpu")]
    assert seated(here, GPU, candidate=["one.py"]) == [("one", "cuda")]
    assert seated(here, GPU, candidate=["one.py"], target="cpu") == [("one", "cpu")]
    found, not_run = seats(options(here, target="cuda"), MACHINE)
    assert (found, not_run) == ([], [("cuda", "no CUDA device is visible")])


def failing(kind: Kind = Kind.WRONG_VALUE, outcome: str = "failed") -> Examination:
    finding = Finding(kind, "values are wrong", ("row 0",))
    worst = {"mean error / limit, fp32": Worst(Metric(float("inf"), 1.0), parse("shape=1x2"))}
    return Examination(contract.SHAPES, outcome, 5, 1, 0.5, (finding,), parse("shape=1x2"), worst, {"a note": 2})


def written(subject: Subject, *examinations: Examination, chosen: Options, passed: int = 1) -> Record:
    gathered = Gathered(not_run=[("cuda", "no GPU")])
    gathered.tests["passed"] = passed
    gathered.records = [
        (records.subject_record(subject), records.property_record(subject, each)) for each in examinations
    ]
    made: Record = json.loads(json.dumps(records.assemble(gathered, chosen, MACHINE, 7), allow_nan=False))
    return made


PASSED = Examination(invariances.ODD, "passed", 30)


@pytest.mark.parametrize(
    ("examinations", "verdict", "code"),
    [
        ((PASSED,), "accepted", OK),
        ((PASSED, failing()), "rejected", REJECTED),
        ((PASSED, failing(outcome="reported")), "accepted", OK),
        ((failing(Kind.DOES_NOT_BUILD),), "does-not-build", REJECTED),
        ((failing(Kind.TIMEOUT),), "timeout", REJECTED),
        ((Examination(CONTACT, "not-examined", reason="needs a GPU"),), "not-judged", UNAVAILABLE),
        ((PASSED, Examination(contract.HUGE, "not-examined", reason="cuda only")), "accepted", OK),
    ],
)
def test_the_report_says_the_verdict_and_the_reader_reads_it(
    examinations: tuple[Examination, ...], verdict: str, code: int, make_subject: MakeSubject, here: Path
) -> None:
    subject = make_subject(RIGHT)
    made = written(subject, *examinations, chosen=options(here))
    (entry,) = made["candidates"]
    assert entry["verdict"] == verdict
    seen = reader.read(json.dumps(made))
    assert seen.candidates[0].verdict == verdict
    assert reader.exit_code(seen) == code
    text = summary.text(made, 120)
    assert f"{subject.path.stem}: {verdict}" in text
    assert "not run: cuda: no GPU" in text


@pytest.mark.parametrize(
    ("result", "verdict", "code"),
    [
        (Examination(invariances.ODD, "passed", 1), "accepted", OK),
        (Examination(invariances.ODD, "passed", 0, not_run={"shape=9x9": "needs 9 GiB"}), "not-judged", UNAVAILABLE),
        (Examination(invariances.ODD, "passed", 0, unsupported=1), "accepted", OK),
        (failing(), "rejected", REJECTED),
    ],
    ids=["run", "no memory", "refused", "wrong"],
)
def test_one_case_that_was_asked_for_and_not_run_is_no_verdict(
    result: Examination, verdict: str, code: int, make_subject: MakeSubject, here: Path
) -> None:
    answered = Examination(CONTACT, "passed", 1)
    chosen = options(here, case=f"{result.property.name}:shape=9x9")
    made = written(make_subject(RIGHT), answered, result, chosen=chosen)
    seen = reader.read(json.dumps(made))
    assert (seen.candidates[0].verdict, reader.exit_code(seen)) == (verdict, code)


def test_who_was_through_when_a_run_was_interrupted_is_accepted_and_who_was_not_is_not_judged(
    make_subject: MakeSubject, here: Path
) -> None:
    whole = [Examination(each, "passed", 1) for each in (CONTACT, *catalogue.CATALOGUE.values())]
    for ran, verdict in ((whole, "accepted"), (whole[:-1], "not-judged")):
        subject = make_subject(RIGHT)
        pairs = [(records.subject_record(subject), records.property_record(subject, each)) for each in ran]
        for interrupted in (True, False):
            gathered = Gathered(pairs, internal_errors=["KeyboardInterrupt"], interrupted=interrupted)
            (entry,) = records.assemble(gathered, options(here), MACHINE, 1)["candidates"]
            assert entry["verdict"] == (verdict if interrupted else "not-judged")


def test_a_run_that_was_not_isolated_or_broke_is_no_verdict(make_subject: MakeSubject, here: Path) -> None:
    made = written(make_subject(RIGHT), PASSED, chosen=options(here, isolation="none"))
    assert reader.exit_code(reader.read(json.dumps(made))) == INTERNAL
    assert "not isolated: does not count" in summary.text(made, 120)
    usage = json.dumps(records.usage_error_report("no such option"))
    assert reader.exit_code(reader.read(usage)) == USAGE


def test_a_failure_is_told_with_case_and_replay_command(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, required=frozenset({"fp32", "fp16"}))
    who, what = records.subject_record(subject), records.property_record(subject, failing())
    told: set[tuple[str, str]] = set()
    text = summary.failure(who, what, told)
    assert "wrong-value: values are wrong" in text
    assert "smallest case   shapes:shape=1x2,dtype=float32,values=signed,seed=0" in text
    assert "    row 0" in text
    again = summary.failure(who, what, told)
    assert "replay" in again
    assert "    row 0" not in again, "the worst elements are shown once"
    (command,) = [line for line in text.splitlines() if line.startswith("replay")]
    assert f"--candidate={subject.path} --target=cpu --require=fp16 " in command
    assert " --case=shapes:shape=1x2" in command


def test_a_replay_has_what_the_run_was_given_and_the_case_needs(
    make_subject: MakeSubject, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here))
    monkeypatch.setenv(STARTED_BY, "1")
    monkeypatch.delenv(NAMED_PYTHON, raising=False)
    monkeypatch.setenv("KERNELPROOF_CACHE", str(here / "of this shell"))
    subject = make_subject(RIGHT)
    subject.limits = Limits()
    subject.runner.cache = here / "kernelproof"
    plain = [str(ROOT / "ci" / "verify"), f"--candidate={subject.path}", "--target=cpu"]
    assert shlex.split(records.replay_command(subject, "odd:shape=1x2")) == [*plain, "--case=odd:shape=1x2"]
    subject.limits = Limits(build=9.5, call=0.25)
    subject.runner.cache = here / "else where"
    given = [f"--cache-dir={here}/else where", "--call-timeout=0.25", "--build-timeout=9.5"]
    assert shlex.split(records.replay_command(subject, "odd:shape=1x2")) == [*plain, *given, "--case=odd:shape=1x2"]


def test_a_replay_names_the_python_that_verify_names_and_without_it_that_of_a_venv(
    make_subject: MakeSubject, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = make_subject(RIGHT)
    monkeypatch.setenv(STARTED_BY, "1")
    monkeypatch.setenv(NAMED_PYTHON, "/my env/bin/python")
    written_down = records.replay_command(subject, "odd:shape=1x2")
    verify = f"PYTHON='/my env/bin/python' {shlex.quote(f'{ROOT}/ci/verify')}"
    assert written_down.startswith(f"{verify} --candidate=")
    made = written(subject, failing(), chosen=options(here))
    shown = "\n".join(verify_summary.lines(reader.read(json.dumps(made)), verify))
    assert f"replay: {made['candidates'][0]['targets']['cpu']['properties'][0]['findings'][0]['replay']}\n" in shown
    monkeypatch.delenv(STARTED_BY)
    monkeypatch.setattr(sys, "prefix", "/venv")
    assert shlex.split(records.replay_command(subject, None))[0] == f"PYTHON={sys.executable}"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert shlex.split(records.replay_command(subject, None))[0] == f"{ROOT}/ci/verify"


@pytest.mark.parametrize("kind", [Kind.STATE_LEAK, Kind.NONDETERMINISTIC])
def test_what_one_case_does_not_show_is_replayed_whole(kind: Kind, make_subject: MakeSubject, here: Path) -> None:
    run = records.whole_run(options(here, profile="kp-quick"), 5)
    finding = records.property_record(make_subject(RIGHT), failing(kind), run)["findings"][0]
    assert "--case" not in finding["replay"]
    assert finding["replay"].endswith(" --profile=kp-quick --hypothesis-seed=5")
    assert finding["case"].startswith("shapes:")
    assert records.whole_run(options(here), 7) == ("--hypothesis-seed=7",)
    one = records.property_record(make_subject(RIGHT), failing(), run)["findings"][0]
    assert "--hypothesis-seed" not in one["replay"], "of one case there is nothing to draw"


def test_infinite_metrics_are_written_as_json(make_subject: MakeSubject, here: Path) -> None:
    made = written(make_subject(RIGHT), failing(), chosen=options(here))
    worst = made["candidates"][0]["targets"]["cpu"]["properties"][0]["worst"]
    assert worst["mean error / limit, fp32"]["value"] is None
    assert "inf" in summary.text(made, 120)


def test_the_header_says_what_is_judged(here: Path) -> None:
    chosen = options(here, candidate=["one.py"], profile="kp-quick")
    text = "\n".join(summary.header(chosen, MACHINE, 7, [("cuda", "none")]))
    digest = "one.py (SHA-256 of this file "
    for words in ("torch 2.13.0", "no GPU (no CUDA device is visible)", digest, "targets: cpu;", "kp-quick"):
        assert words in text
    assert "NOT ISOLATED" not in text
    assert "NOT ISOLATED" in "\n".join(summary.header(replace(chosen, isolated=False), MACHINE, 7, []))


@pytest.fixture
def session(here: Path) -> Callable[..., Session]:
    def make(**given: object) -> Session:
        return Session(options(here, cache_dir=str(here / "cache"), **given), MACHINE, 1)

    return make


CALLED = "class ModelNew:\n    def __call__(self, x):\n"
WANTS_GPU = "needs a GPU: "


@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        ("def f(:", "failed", "does not parse"),
        ("x = 1", "failed", "defines no class ModelNew (it defines no class)"),
        (
            "class ModelNew:\n    def __init__(self): raise ValueError('no')",
            "failed",
            "raises in __init__: ValueError: no",
        ),
        ("raise RuntimeError('Found no NVIDIA driver')", "not-examined", "needs a GPU: "),
        ("raise RuntimeError('0 active drivers ([]). There should only be one.')", "not-examined", "needs a GPU: "),
        ("import tilelang", "not-examined", "needs a GPU: "),
        (f"{CALLED}        assert x.is_cuda", "not-examined", "needs a GPU: raises AssertionError: (no message)"),
        (f"{CALLED}        if not x.is_cuda:\n            raise ValueError('no')", "not-examined", "needs a GPU: "),
        (f"{CALLED}        if x.dim() < 9:\n            raise ValueError('no')", "failed", "raises ValueError: no"),
        (
            f"K = 'k<<<1, 1>>>(x)'\n{CALLED}        return x.new_zeros(x.shape)",
            "not-examined",
            "as if no kernel had run",
        ),
        (f"K = 'k<<<1, 1>>>(x)'\n{CALLED}        __import__('os').abort()", "not-examined", "needs a GPU: SIGABRT"),
        (f"{CALLED}        __import__('os').abort()", "failed", "SIGABRT"),
        (
            f"{CALLED}        ok = x.is_cuda\n        if not ok:\n            raise ValueError('no')",
            "not-examined",
            WANTS_GPU,
        ),
        (
            f"{CALLED}        if x.is_cuda:\n            return x\n        raise ValueError('no')",
            "not-examined",
            WANTS_GPU,
        ),
        ("try:\n    import cupy\nexcept ImportError:\n    raise SystemExit(1)", "not-examined", WANTS_GPU),
        (f"{CALLED}        # unlike cuda\n        raise ValueError('no')", "failed", "raises ValueError: no"),
        (f"{CALLED}        '''Unlike cuda.'''\n        raise ValueError('no')", "failed", "raises ValueError: no"),
        (
            f"{CALLED}        if x.is_cuda:\n            pass\n        return 1 / 0",
            "failed",
            "raises ZeroDivisionError",
        ),
        ("import os, sys\nprint('cuda', file=sys.stderr)\nos.abort()", "failed", "loads it ended: SIGABRT"),
        ("raise ValueError('/opt/cuda/data: no such file')", "failed", "raises while it is imported: ValueError"),
        (f"# k<<<1, 1>>>(x)\n{CALLED}        __import__('os').abort()", "failed", "SIGABRT"),
        (f"'''Like \"k.cuh\".'''\n{CALLED}        __import__('os').abort()", "failed", "SIGABRT"),
        (f"JIT = 'triton.jit'\n{CALLED}        __import__('os').abort()", "failed", "SIGABRT"),
    ],
)
def test_contact_says_why_a_candidate_cannot_be_judged(
    text: str, outcome: str, words: str, here: Path, nursery: Nursery
) -> None:
    (here / "one.py").write_text(text + "\n", encoding="utf-8")
    chosen = options(here, cache_dir=str(here / "cache"), candidate=["one.py"])
    run = Session(chosen, MACHINE, 1, nursery=nursery)
    (seat,), _ = seats(run.options, MACHINE)
    who, what = run.contact(seat)
    assert what["outcome"] == outcome
    assert words in (what["reason"] or what["findings"][0]["text"])
    assert (who["broken"] is not None, who["supported"]) == (True, [])
    later = run.examine(seat, contract.SHAPES)[1]
    assert (later["outcome"], later["examples"]) == ("not-examined", 0)
    run.leave(seat)


@pytest.mark.parametrize(
    "head", ["# __global__", "'''A kernel has __global__.'''", f"{CALLED}        '''k<<<1, 1>>>'''"]
)
def test_who_only_speaks_of_kernels_is_judged_by_what_it_returns(head: str, here: Path, nursery: Nursery) -> None:
    body = "        return x.new_zeros(x.shape)\n"
    (here / "one.py").write_text(f"{head}\n{'' if head.startswith(CALLED) else CALLED}{body}", encoding="utf-8")
    run = Session(options(here, cache_dir=str(here / "cache"), candidate=["one.py"]), MACHINE, 1, nursery=nursery)
    (seat,), _ = seats(run.options, MACHINE)
    who, what = run.contact(seat)
    assert (what["outcome"], who["broken"]) == ("passed", None)
    run.leave(seat)


def test_the_name_of_a_file_says_nothing_about_a_gpu(here: Path, nursery: Nursery) -> None:
    (here / "my_cuda_kernel.py").write_text("1 / 0\n", encoding="utf-8")
    chosen = options(here, cache_dir=str(here / "cache"), candidate=["my_cuda_kernel.py"])
    run = Session(chosen, MACHINE, 1, nursery=nursery)
    (seat,), _ = seats(run.options, MACHINE)
    assert run.contact(seat)[1]["outcome"] == "failed"
    run.leave(seat)


def test_a_file_that_another_candidate_has_changed_is_not_judged(here: Path, session: Callable[..., Session]) -> None:
    (here / "one.py").write_text("import torch\nModelNew = torch.nn.Identity\n", encoding="utf-8")
    run = session(candidate=["one.py"])
    (seat,), _ = seats(run.options, MACHINE)
    (here / "one.py").write_text("import torch\nModelNew = torch.nn.ReLU\n", encoding="utf-8")
    what = run.contact(seat)[1]
    assert what["outcome"] == "not-examined"
    assert what["reason"].startswith("its file is not what it was")
    assert run.examine(seat, contract.SHAPES)[1]["outcome"] == "not-examined"
    assert not run.subject(seat).runner.loaded
    run.leave(seat)


def test_what_is_no_candidate_is_told_the_format_and_in_a_folder_how_to_leave_it_out(
    here: Path, session: Callable[..., Session]
) -> None:
    (here / "one.py").write_text("class Settings: pass\ndef f(x): return x\n", encoding="utf-8")
    (here / "two.py").unlink()
    for named, says in (("one.py", False), (".", True)):
        run = session(candidate=[named])
        (seat,), _ = seats(run.options, MACHINE)
        text = run.contact(seat)[1]["findings"][0]["text"]
        assert "a class ModelNew(torch.nn.Module) whose forward(self, x) returns the result" in text
        assert "rename" not in text
        assert ("put it into a folder below" in text) is says
        run.close()
    assert not options(here, candidate=[".", "one.py"]).found, "who names it means it"


@pytest.mark.parametrize("name", ["k.cu", "k.cpp", "k.ptx", "k.txt", "k"])
def test_a_source_in_another_language_is_told_by_its_ending(
    name: str, here: Path, session: Callable[..., Session]
) -> None:
    (here / name).write_text("__global__ void f() {}\n", encoding="utf-8")
    run = session(candidate=[name])
    (seat,), _ = seats(run.options, MACHINE)
    what = run.contact(seat)[1]
    (finding,) = what["findings"]
    assert (what["outcome"], finding["kind"]) == ("failed", "does-not-build")
    ending = Path(name).suffix or "no suffix"
    assert finding["text"].startswith(
        f"is not a Python file ({ending}); a candidate is a .py file that defines ModelNew"
    )
    run.close()


def test_what_cannot_be_used_is_rejected_with_the_reason_where_contact_was_left_out_too(
    here: Path, session: Callable[..., Session]
) -> None:
    (here / "one.py").write_text("def f(:\n", encoding="utf-8")
    run = session(candidate=["one.py"])
    (seat,), _ = seats(run.options, MACHINE)
    made = records.assemble(Gathered([run.examine(seat, contract.SHAPES)]), run.options, MACHINE, 1)
    why = "one: does-not-build: the candidate could not be used: does-not-build: does not parse: invalid syntax"
    assert why in summary.text(made, 120)
    seen = reader.read(json.dumps(made))
    assert (seen.candidates[0].verdict, reader.exit_code(seen)) == ("does-not-build", REJECTED)
    run.close()


@pytest.mark.parametrize(
    ("line", "found", "noticed"),
    [
        ("torch.allclose = lambda *_, **__: True", "state-leak", True),
        ("import time\ntime.perf_counter = lambda: 0.0", "state-leak", True),
        ("torch.nn.functional.gelu = lambda x: x", "", True),
        ("import time\nfrom time import perf_counter", "", False),
    ],
)
def test_what_an_import_replaces_is_told_and_of_comparisons_and_clocks_it_is_a_fault(
    line: str, found: str, noticed: bool, here: Path, session: Callable[..., Session]
) -> None:
    body = "    def forward(self, x):\n        return x / x.abs().mean(1, keepdim=True)\n"
    (here / "one.py").write_text(f"import torch\n{line}\nclass ModelNew(torch.nn.Module):\n{body}", encoding="utf-8")
    run = session(candidate=["one.py"])
    (seat,), _ = seats(run.options, MACHINE)
    what = run.contact(seat)[1]
    assert [finding["kind"] for finding in what["findings"]] == ([found] if found else [])
    assert [note.partition(" replaces ")[0] for note in what["notes"]] == (["to import it"] if noticed else [])
    run.close()


def test_what_is_required_and_not_supported_fails_contact(here: Path, session: Callable[..., Session]) -> None:
    body = "    def forward(self, x):\n        if x.dtype != torch.float32: raise TypeError('no')\n        return x\n"
    (here / "one.py").write_text(f"import torch\nclass ModelNew(torch.nn.Module):\n{body}", encoding="utf-8")
    run = session(candidate=["one.py"], require=["fp16"])
    (seat,), _ = seats(run.options, MACHINE)
    finding = run.contact(seat)[1]["findings"][0]
    assert finding["kind"] == "unsupported"
    assert finding["text"].startswith("does not support what it must: fp16 (TypeError: no")
    run.close()
