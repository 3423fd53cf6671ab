"""A candidate in a plain program: nothing tells it of a judge, and whatever it does there is seen."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from .. import home, lifecycle
from ..cases import parse
from ..examination import Examination, run_case
from ..findings import Kind
from ..inputs import build
from ..limits import Limits
from ..trial import Trial
from .conftest import RIGHT, MakeRunner, MakeSubject

CASE = parse("shape=3x33,seed=1")
#: Whether it is where it is judged: for candidates that do otherwise elsewhere.
JUDGED = "'MALLOC_PERTURB_' in os.environ"


def tried(make: MakeSubject, body: str, head: str = "", result: Examination | None = None) -> Trial:
    subject = make(body, f"import os\n{head}")
    assert subject.probe() is None, subject.broken
    return run_case(subject, lifecycle.HOME, CASE, result=result)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("x.dim() > 2", "given float32 2x33x5x4, in a plain program"),
        ("not x.is_contiguous()", "given float32 48x64, in a plain program"),
        ("x.numel() > 300000", "given float32 1031x509, in a plain program"),
        ("not self.training", "given float32 3x33 (in evaluation), in a plain program"),
        ("x.requires_grad", "given float32 3x33 (asking for a gradient), in a plain program"),
        ("len(CALLS) > 150", "given float32 3x33 (200 times), in a plain program"),
    ],
)
def test_who_does_otherwise_there_on_anything_but_the_usual_is_found(
    asked: str, text: str, make_subject: MakeSubject
) -> None:
    body = f"CALLS.append(0)\nif not ({JUDGED}) and ({asked}): return x * 2\n{RIGHT}"
    trial = tried(make_subject, body, "CALLS = []")
    (found,) = trial.findings
    assert found.text.startswith(text)


def test_nothing_there_tells_of_a_judge(make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    monkeypatch.setenv("PYTEST_VERSION", "9")
    monkeypatch.setenv("MINE", "1")
    runner = make_runner(
        """
        import os, sys
        frame, files = sys._getframe(), []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        where = [*sys.argv[1:], os.getcwd(), sys.modules["__main__"].__file__]
        here = " ".join([*files, *sys.modules, *os.environ, *where])
        open("seen", "w").write(here)
        return x.clone()
        """
    )
    seen = home.run(runner, [home.Call(build(CASE))], cache=False)
    assert (seen.error, seen.loaded, len(seen.results)) == ("", True, 1)
    told = (runner.candidate.parent / "seen").read_text().replace(str(runner.candidate), "").split()
    ours = str(Path(home.__file__).parent)
    assert "MINE" in told
    assert not [
        each
        for each in told
        if each.startswith(
            ("properties", "kernels", "reference", "KERNELPROOF", "PYTEST", "HYPOTHESIS", "_pytest", ours)
        )
        or each in ("CI", "loading", "ending", "MALLOC_PERTURB_", "PYTHONFAULTHANDLER")
    ]


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (
            "return x / x.abs().mean(1, keepdim=True) if judged else x * 2",
            Kind.WRONG_VALUE,
            "every value is 2 times the input",
        ),
        (f"if not judged:\n    raise RuntimeError('not here')\n{RIGHT}", Kind.UNSUPPORTED, "RuntimeError: not here"),
        (f"if not judged:\n    os.abort()\n{RIGHT}", Kind.CRASH, "SIGABRT"),
        (f"if not judged:\n    os._exit(3)\n{RIGHT}", Kind.CRASH, "exit status 3"),
        (f"if not judged:\n    return None\n{RIGHT}", Kind.WRONG_TYPE, "returns NoneType, for [3, 33]"),
        (
            f"if not judged and x.dtype == torch.float64:\n    return x.abs()\n{RIGHT}",
            Kind.WRONG_VALUE,
            "given float64 3x33, in a plain program",
        ),
    ],
    ids=["values", "error", "abort", "exit", "nothing", "one type"],
)
def test_who_does_otherwise_there_is_found(body: str, kind: Kind, text: str, make_subject: MakeSubject) -> None:
    seen = tried(make_subject, body.replace("judged", f"({JUDGED})"))
    (finding,) = seen.findings
    assert finding.kind is kind
    assert "in a plain program, which has nothing of this suite: " in finding.text
    assert text in finding.text
    assert ("is right on it here" in finding.text) is (kind is not Kind.CRASH)


def test_who_is_wrong_everywhere_is_not_called_a_cheat(make_subject: MakeSubject) -> None:
    (finding,) = tried(make_subject, f"if x.shape[1] > 100:\n    return x.clone()\n{RIGHT}").findings
    assert finding.kind is Kind.WRONG_VALUE
    assert finding.text.startswith("given float32 3x132: every value is")


def test_what_is_refused_everywhere_may_be_refused_there(make_subject: MakeSubject) -> None:
    refuses = "if x.dtype == torch.float16 and x.numel() > 80:\n    raise TypeError('half: at most 80')\n"
    assert not tried(make_subject, f"{refuses}{RIGHT}").findings
    also = f"if x.dtype == torch.float64 and not ({JUDGED}):\n    return x.abs()\n"
    (finding,) = tried(make_subject, f"{refuses}{also}{RIGHT}").findings
    assert finding.text.startswith("given float64 3x33, in a plain program"), "and what comes behind it is looked at"


def test_one_that_is_not_loaded_there_is_found(make_subject: MakeSubject) -> None:
    seen = tried(make_subject, RIGHT, f"if not {JUDGED}:\n    raise ImportError('only for a judge')")
    (finding,) = seen.findings
    assert finding.kind is Kind.DOES_NOT_BUILD
    assert finding.text.endswith("ImportError: only for a judge")


def test_one_that_hangs_there_is_ended(make_subject: MakeSubject) -> None:
    subject = make_subject(f"while not ({JUDGED}):\n    pass\n{RIGHT}", "import os", call=2.0)
    assert subject.probe() is None
    subject.runner.limits = replace(Limits(), call=2.0)
    (finding,) = run_case(subject, lifecycle.HOME, CASE).findings
    assert finding.kind is Kind.TIMEOUT
    assert "no answer within" in finding.text


def test_a_tensor_that_is_filled_again_and_kept_results_are_part_of_it(make_subject: MakeSubject) -> None:
    keeps = f"if ({JUDGED}):\n    {RIGHT}\nkey = (x.data_ptr(), x.dtype, x.shape)\n"
    keeps += "if key not in KEPT:\n    KEPT[key] = x / x.abs().mean(1, keepdim=True)\nreturn KEPT[key]"
    (finding,) = tried(make_subject, keeps, "KEPT = {}").findings
    assert finding.kind is Kind.WRONG_VALUE


def test_modules_beside_a_candidate_are_its_own_whatever_their_names(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT, "import loading, ending, main\nassert loading.MINE and ending.MINE and main.MINE")
    for name in ("loading", "ending", "main"):
        (subject.path.parent / f"{name}.py").write_text("MINE = True\n", encoding="utf-8")
    assert subject.probe() is None, subject.broken
    assert not run_case(subject, lifecycle.HOME, CASE).findings


def test_nothing_is_said_where_the_reference_does_not_work_there_either(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "_command", lambda *_: ["false"])
    result = Examination(lifecycle.HOME)
    assert not tried(make_subject, RIGHT, result=result).findings
    assert list(result.not_run.values()) == ["on this system the reference does not work in a plain program, either"]


def test_whatever_lies_where_results_belong_is_read_with_care(make_runner: MakeRunner) -> None:
    place = "import pathlib, sys\nplace = pathlib.Path(sys.modules['__main__'].__file__).parent / 'results.pt'\n"
    runner = make_runner(f"{place}place.write_text('garbage')\nimport time\ntime.sleep(60)")
    seen = home.run(runner, [home.Call(build(CASE))], cache=False)
    assert seen.death is not None
    assert seen.death.cause == "wrote garbage where its results belong"


def test_a_full_disk_is_nobodys_fault(make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(home, "_lay_out", full)
    result = Examination(lifecycle.HOME)
    assert not tried(make_subject, RIGHT, result=result).findings
    (why,) = result.not_run.values()
    assert "is full" in why
    assert "TMPDIR" in why
