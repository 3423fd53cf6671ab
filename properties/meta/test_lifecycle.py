"""Further instances of a model: each is made as its words say, and what one does to another is found."""

from __future__ import annotations

import pytest
import torch

from .. import contract, engine, lifecycle, protocol, worker_models
from ..cases import parse
from ..examination import run_case
from ..findings import Kind
from ..observation import Death
from ..protocol import INSTANCES
from ..runner import Runner
from ..trial import Trial
from .conftest import RIGHT, MakeSubject

SECOND, COPY, LOADED, TURNED, READ = INSTANCES
CASE = "shape=3x33,dtype=float16,seed=1"
#: What a test's candidate keeps: which instance it is, and something in its state.
HEAD = """
import copy
MADE = []

def kept(self):
    if 'number' not in vars(self):
        self.number = len(MADE)
        MADE.append(self.number)
    return self.number
"""


def tried(make: MakeSubject, body: str, head: str = "", case: str = CASE) -> Trial:
    subject = make(body, head=head)
    assert subject.probe() is None, subject.broken
    return run_case(subject, lifecycle.INSTANCES, parse(case))


class Keeps(torch.nn.Module):
    """A module with a state."""

    one: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("one", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Nothing."""
        return x


def test_every_instance_has_a_maker() -> None:
    assert tuple(worker_models.MAKERS) == protocol.INSTANCES


def test_each_is_made_as_it_is_called() -> None:
    first = Keeps()
    first.one += 1
    made = {name: maker(first, Keeps, torch.float16) for name, maker in worker_models.MAKERS.items()}
    assert all(isinstance(each, Keeps) and each is not first for each in made.values())
    states = {name: (float(each.one), each.one.dtype) for name, each in made.items() if isinstance(each, Keeps)}
    assert states == {
        SECOND: (0.0, torch.float32),
        COPY: (1.0, torch.float32),
        LOADED: (1.0, torch.float32),
        TURNED: (0.0, torch.float16),
        READ: (1.0, torch.float32),
    }
    assert float(first.one) == 1.0


def test_what_is_no_module_is_made_again_and_copied() -> None:
    for name, maker in worker_models.MAKERS.items():
        assert maker(len, lambda: len, torch.float16) is len, name


@pytest.mark.parametrize("case", [CASE, "shape=0x5", "shape=2x5x3"])
def test_a_right_model_is_right_however_it_is_made(case: str, make_subject: MakeSubject) -> None:
    trial = tried(make_subject, RIGHT, case=case)
    assert not trial.findings
    assert not trial.notes


def test_what_is_wrong_in_a_second_instance_is_found(make_subject: MakeSubject) -> None:
    (found,) = tried(make_subject, f"x = x + 1 if kept(self) == 1 else x\n{RIGHT}", HEAD).findings
    assert found.text.startswith(f"{SECOND}: ")


def test_what_a_second_instance_does_to_the_first_is_found(make_subject: MakeSubject) -> None:
    body = f"x = x + 1 if kept(self) == 0 and len(MADE) > 1 else x\n{RIGHT}"
    (found,) = tried(make_subject, body, HEAD).findings
    assert found.text.startswith(f"the first instance, beside {SECOND}: ")


#: Marks every copy, and everything that was read from a file; what is read is no copy then.
_MARKS_COPIES = """
def copied(self, _):
    made = type(self)()
    made.odd = True
    return made
torch.nn.Module.__deepcopy__ = copied
"""
_MARKS_READ = """
def read(self, state):
    self.__dict__.update(state)
    self.odd = True
torch.nn.Module.__setstate__ = read
torch.nn.Module.__deepcopy__ = lambda self, _: type(self)()
"""


@pytest.mark.parametrize(
    ("instance", "refuses", "marks"),
    [
        (COPY, "torch.nn.Module.__deepcopy__ = lambda *_: 1 / 0", _MARKS_COPIES),
        (
            READ,
            "torch.nn.Module.__reduce_ex__ = lambda *_: 1 / 0\ntorch.nn.Module.__deepcopy__ = lambda self, _: self",
            _MARKS_READ,
        ),
    ],
)
def test_what_is_copied_or_saved_and_loaded_may_be_refused_but_not_wrong(
    instance: str, refuses: str, marks: str, make_subject: MakeSubject
) -> None:
    trial = tried(make_subject, RIGHT, refuses)
    assert not trial.findings
    assert [note for note in trial.notes if note.startswith(f"cannot be had as {instance}: ZeroDivisionError")]
    (found,) = tried(make_subject, f"x = x + 1 if hasattr(self, 'odd') else x\n{RIGHT}", marks).findings
    assert found.text.startswith(f"{instance}: ")


def test_a_copy_that_is_the_model_itself_is_none(make_subject: MakeSubject) -> None:
    trial = tried(make_subject, RIGHT, "torch.nn.Module.__deepcopy__ = lambda self, _: self")
    assert not trial.findings
    (note,) = trial.notes
    assert note == f"cannot be had as {COPY}: TypeError: copy.deepcopy gives the model itself, no copy"


def test_a_copy_that_could_be_had_may_not_raise(make_subject: MakeSubject) -> None:
    raises = f"if hasattr(self, 'odd'): raise KeyError('odd')\n{RIGHT}"
    (found,) = tried(make_subject, raises, _MARKS_COPIES, "shape=3x33").findings
    assert (found.kind, "KeyError" in found.text) == (Kind.UNSUPPORTED, True)


def test_one_that_ends_the_process_where_it_is_copied_has_crashed(make_subject: MakeSubject) -> None:
    head = "import os\ntorch.nn.Module.__deepcopy__ = lambda *_: os._exit(3)"
    (found,) = tried(make_subject, RIGHT, head).findings
    assert (found.kind, found.text) == (Kind.CRASH, f"when {COPY} is made: exit status 3")


def test_a_destructor_that_takes_the_others_along_is_found(make_subject: MakeSubject) -> None:
    head = "GONE = []\ntorch.nn.Module.__del__ = lambda self: GONE.append(1)"
    (found,) = tried(make_subject, f"x = x + 1 if GONE else x\n{RIGHT}", head).findings
    assert found.text.startswith("the first instance, when the others are gone: ")


def test_a_type_that_it_was_not_made_for_may_be_refused_at_the_call(make_subject: MakeSubject) -> None:
    for odd, refused in (
        ("raise TypeError('no')", "refuses to be"),
        ("return x.float()", "returns float32 for float16"),
    ):
        body = f"if self._buffers and next(iter(self._buffers.values())).dtype == torch.float16: {odd}\n{RIGHT}"
        made = "class Base(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        made += "        self.register_buffer('zero', torch.zeros(1))\ntorch.nn.Module = Base"
        trial = tried(make_subject, body, made)
        assert not trial.findings
        assert [note for note in trial.notes if note.startswith(refused)], trial.notes


# ---- The end --------------------------------------------------------------------------------------------------------

THREADS = "import threading, time\n"


def ended(make: MakeSubject, head: str) -> Trial:
    """What comes of a program's end; the next call has a process again."""
    subject = make(RIGHT, head=head)
    assert subject.probe() is None, subject.broken
    trial = run_case(subject, lifecycle.END, parse("shape=3x33,seed=1"))
    assert not run_case(subject, contract.SHAPES, parse("shape=3x33,seed=1")).findings
    return trial


@pytest.mark.parametrize(
    "head",
    [
        "",
        "import atexit\natexit.register(print, 'good bye')",
        f"{THREADS}threading.Thread(target=time.sleep, args=(0.2,)).start()",
        f"{THREADS}threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\nsys.exit = None",
    ],
    ids=["plain", "handler", "short thread", "daemon", "no output", "no exit"],
)
def test_what_ends_with_its_program_is_not_accused(head: str, make_subject: MakeSubject) -> None:
    assert not ended(make_subject, head).findings


@pytest.mark.parametrize(
    ("head", "cause"),
    [
        (f"{THREADS}threading.Thread(target=time.sleep, args=(600,)).start()", "it goes on for 1 s"),
        ("import atexit, time\natexit.register(time.sleep, 600)", "it goes on for 1 s"),
        ("import atexit, os\natexit.register(os._exit, 0)", "exit status 0"),
        ("import atexit, os\natexit.register(os.abort)", "SIGABRT"),
    ],
    ids=["thread", "handler", "another code", "signal"],
)
def test_what_keeps_a_program_from_its_end_is_found(
    head: str, cause: str, make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cause.startswith("it goes on"):
        times = iter((1.0, 15.0))  # the reference, which is asked afterwards, is to have its time
        before = Runner.end
        monkeypatch.setattr(Runner, "end", lambda self, status, _: before(self, status, next(times)))
    (found,) = ended(make_subject, head).findings
    assert found.kind is Kind.STATE_LEAK
    assert found.text.endswith(f"with its own exit code (42): {cause}")


def test_nothing_is_said_where_the_reference_does_not_end_either(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "end", lambda *_: Death("SIGSEGV", "the end"))
    subject = make_subject(RIGHT)
    assert subject.probe() is None
    seen = engine.replay(subject, lifecycle.END, parse("shape=3x33,seed=1"))
    assert not seen.findings
    assert list(seen.not_run.values()) == ["on this system the reference does not end as it should, either"]
