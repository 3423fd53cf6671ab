"""A run's subjects and its examinations: what the tests call, without pytest in it."""

from __future__ import annotations

import contextlib
import re
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from . import engine, records, source_text
from .cases import FEATURES
from .examination import Examination, Property
from .findings import Finding, Kind
from .gpu import Gpu
from .l1_norm import L1_NORM
from .operators import Operator
from .options import ROOT, Options
from .process import Nursery
from .records import Record
from .runner import Runner
from .slots import Slots
from .subject import PROMISES, Subject
from .targets import Machine

#: Targets on which this version can judge.
JUDGED_TARGETS = ("cpu", "cuda")
#: A candidate without a GPU to run on says so in words like these, or in the statement that raises them; it is then
#: not judged, which is no rejection. The later ones are libraries for GPUs alone, and what triton says without driver.
_WANTS_GPU = re.compile(
    r"cuda|\bgpus?\b|nvcc|nvidia|triton|nvrtc|cupy|cutlass|tilelang|flash_attn|xformers|\d active drivers?",
    re.IGNORECASE,
)
_NEEDS_GPU = "needs a GPU: "
#: What the code of a file says that launches compiled kernels of its own. Who does not look at the error of a launch
#: returns what its memory happened to hold, or ends the process. Triton looks, and raises.
_LAUNCHES_COMPILED = re.compile(r"__global__|<<<|\.cuh?[\"']|\.ptx|\.cubin|nvrtc|cuLaunchKernel")
_LAUNCHES = re.compile(rf"{_LAUNCHES_COMPILED.pattern}|triton\.jit")
_PLACE = re.compile(r"\((?P<file>[^()]+), line (?P<line>\d+)\)")
#: The folders of a path, behind an option of a compiler or not: ``/usr/local/cuda`` is the name of a place.
_FOLDERS = re.compile(r"(?:(?<!\w)|(?<=-[IL]))\.{0,2}/(?:[^\s/'\"]+/)*")
#: A candidate that is judged before may write where it likes, and this one's verdict would be that of another program.
_CHANGED = "its file is not what it was when the run began: judge it by itself, as it was"
#: How a folder is judged without one of its files: one that others import is left out anyway.
_LEAVE_OUT = (
    "to judge its folder without it, put it into a folder below, or name the others one by one: --candidate=FILE"
)
#: How a finding begins that is the death of a process while it loads: its details are all that was written there.
_DIED_LOADING = "the process that loads it ended: "

CONTACT = Property(
    "contact",
    "The candidate loads, builds and answers a contiguous float32 matrix.",
    None,
    lambda *_: None,
)


@dataclass(frozen=True)
class Seat:
    """One candidate on one target, before anything of it was run."""

    path: Path
    target: str
    shipped: bool

    def __str__(self) -> str:
        """For test ids."""
        return f"{self.path.stem}-{self.target}"


def seats(options: Options, machine: Machine, operator: Operator = L1_NORM) -> tuple[list[Seat], list[tuple[str, str]]]:
    """Who is judged where, and what is not run with the reason.

    The shipped kernel is judged on every target that is there; any other candidate on cuda where there is a GPU, else
    on cpu, unless ``--target`` says otherwise.
    """
    missing = {"cuda": machine.no_gpu or ("" if "cuda" in JUDGED_TARGETS else "judging on cuda is not built yet")}
    here = [target for target in options.targets if not missing.get(target)]
    not_run = [(target, missing[target]) for target in options.targets if missing.get(target)]
    not_run += [(path.name, "no ModelNew is seen in its text, and others import it") for path in options.helpers]
    not_run += [(path.name, why) for path, why in options.unreadable]
    found = []
    for path in options.candidates:
        shipped = path == operator.shipped
        chosen = (
            here
            if shipped or len(options.targets) == 1
            else [target for target in ("cuda", "cpu") if target in here][:1]
        )
        found += [Seat(path, target, shipped) for target in chosen]
    return found, not_run


@dataclass
class Session:
    """Everything that lives as long as a run.

    Attributes:
        options: of the run.
        machine: it runs on.
        seed: from which every property's own seed is made.
    """

    options: Options
    machine: Machine
    seed: int
    operator: Operator = L1_NORM
    nursery: Nursery = field(default_factory=Nursery)
    gpu: Gpu = field(default_factory=Gpu)
    _subjects: dict[Seat, Subject] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look at all files once, before anything of any candidate has run."""
        for path in self.options.candidates:
            if path.is_file():
                records.sha256(path)

    def subject(self, seat: Seat) -> Subject:
        """The subject of a seat, made once."""
        if seat not in self._subjects:
            records.sha256(seat.path)
            promised = frozenset((*FEATURES, *PROMISES)) if seat.shipped else frozenset[str]()
            device = "cuda:0" if seat.target == "cuda" else "cpu"
            limits, required = self.options.limits, self.options.require | promised | {"fp32"}
            cache, isolated = self.options.cache, self.options.isolated
            slots = Slots(device, pinned=self.options.pinned)
            runner = Runner(
                seat.path, self.operator.init, limits, self.nursery, cache, device, isolated, slots=slots, gpu=self.gpu
            )
            made = self._subjects[seat] = Subject(
                seat.path, seat.target, self.operator, seat.shipped, required, limits, runner
            )
            if not records.as_at_first(seat.path):
                made.pass_over(Finding(Kind.NOT_RUN, _CHANGED))
        return self._subjects[seat]

    def contact(self, seat: Seat) -> tuple[Record, Record]:
        """Probe a subject; records as `examine` gives them."""
        subject = self.subject(seat)
        gone = subject.runner.gone
        broken = Finding(Kind.NOT_RUN, gone) if gone else self._probe(subject)
        result = Examination(CONTACT, examples=1)
        if replaced := subject.runner.replaced:
            result.notes[f"to import it replaces {', '.join(replaced)}, for the whole process"] = 1
        if broken is not None:
            if seat.path in self.options.found and not source_text.may_hold_model(seat.path):
                broken = replace(broken, text=f"{broken.text}; {_LEAVE_OUT}")
            result.outcome, result.findings = "failed", (broken,)
            if broken.kind is Kind.NOT_RUN:
                result.outcome, result.reason = "not-examined", broken.text
        elif missing := sorted(self.subject(seat).required & set(FEATURES) & set(subject.unsupported)):
            words = [f"{name} ({subject.unsupported[name]})" for name in missing]
            text = f"does not support what it must: {'; '.join(words)}"
            result.outcome, result.findings = "failed", (Finding(Kind.UNSUPPORTED, text),)
        return records.subject_record(subject), self._record(subject, result)

    def examine(self, seat: Seat, prop: Property) -> tuple[Record, Record]:
        """Examine one property; returns the subject's and the property's record."""
        subject = self.subject(seat)
        if subject.runner.gone:
            result = Examination(prop, "not-examined", reason=subject.runner.gone)
        elif (broken := self._probe(subject)) is not None:
            # `contact` says the same, but may have been left out.
            why = broken.text if broken.kind is Kind.NOT_RUN else str(broken)
            result = Examination(prop, "not-examined", reason=f"the candidate could not be used: {why}")
        elif not prop.applies(self.operator):
            result = Examination(prop, "not-examined", reason=f"{self.operator.name} does not have this property")
        elif seat.target not in prop.targets:
            result = Examination(prop, "not-examined", reason=f"checked on {' and '.join(prop.targets)} only")
        elif self.options.case is not None:
            result = engine.replay(subject, prop, self.options.case[1])
        else:
            result = engine.examine(subject, prop, self.options.profile, self._seed(prop), self._database())
        return records.subject_record(subject), self._record(subject, result)

    def leave(self, seat: Seat) -> None:
        """End the workers of a seat that is not needed any more."""
        subject = self._subjects.pop(seat, None)
        if subject is not None:
            subject.close()

    def close(self) -> None:
        """End all workers."""
        for subject in self._subjects.values():
            subject.close()
        self._subjects.clear()
        self.nursery.close()

    def _record(self, subject: Subject, result: Examination) -> Record:
        return records.property_record(subject, result, records.whole_run(self.options, self.seed))

    def _seed(self, prop: Property) -> int:
        return zlib.crc32(f"{self.seed} {prop.name}".encode())

    def _database(self) -> ExampleDatabase | None:
        folder = ROOT / ".hypothesis" / "examples"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            return DirectoryBasedExampleDatabase(folder)
        return None

    def _probe(self, subject: Subject) -> Finding | None:
        """What keeps a candidate from being judged, or None; what only misses a GPU that is not there is not run."""
        broken = subject.probe()
        if subject.shipped or subject.target != "cpu" or not self.machine.no_gpu:
            return broken
        if broken is None and subject.idle and _LAUNCHES.search(source_text.code(subject.path)):
            text = f"{_NEEDS_GPU}every element of its first result is the same, as if no kernel had run"
            subject.broken, subject.supported = Finding(Kind.NOT_RUN, text), frozenset()
        elif broken is not None and broken.kind is not Kind.NOT_RUN and _wants_gpu(subject.path, broken):
            subject.broken = Finding(Kind.NOT_RUN, f"{_NEEDS_GPU}{broken.text}", broken.details)
        return subject.broken


def _wants_gpu(path: Path, broken: Finding) -> bool:
    """Whether a candidate that does not answer on cpu says that it only misses a GPU."""
    if broken.kind is Kind.CRASH:
        return bool(_LAUNCHES_COMPILED.search(source_text.code(path)))
    if broken.kind not in (Kind.DOES_NOT_BUILD, Kind.UNSUPPORTED):
        return False
    details = () if broken.text.startswith(_DIED_LOADING) else broken.details
    said = _FOLDERS.sub("", " ".join((broken.text, *details)).replace(path.name, ""))
    place = _PLACE.search(broken.text)
    if place is not None and place["file"] == path.name:
        said += " " + source_text.words_of(path, int(place["line"]))
    return bool(_WANTS_GPU.search(said))
