"""The gate of one run: which cases it must have, what each came to, and the record of them all. No pytest in it.

Every expected case ends as something: measured, or not measured with its reason. What nobody accounted for did not run.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ci import gate_cases, gate_record, lock
from ci.exits import Stop
from ci.gate_cases import CasesError, unmeasured
from ci.gate_record import (
    ANOTHER_GPU,
    BUSY,
    FASTER,
    INTERLEAVED,
    MISSING,
    NO_BASELINE,
    NO_GPU,
    NOT_MEASURED,
    SAME,
    SKIPPED,
    STORED,
    Case,
    Contestant,
    Record,
)

from . import benchmark_report, card, tool, verdicts
from .benchmark_cases import Entry, entries
from .benchmarks import Lineup, label
from .cases import parse
from .duel import Duel, Tell
from .gate_options import GateOptions
from .l1_norm import L1_NORM
from .limits import Limits
from .process import Nursery
from .targets import Machine

#: Seconds to wait for another gate on the same card: three times what one may take there.
LONGEST_WAIT = 900.0
#: Files of a kernel package that decide what runs.
_SOURCES = {".py", ".cpp", ".cc", ".c", ".cu", ".cuh", ".h", ".hpp"}


@dataclass
class Gate:
    """A candidate, its base, and the cases.

    Attributes:
        candidate: its file.
        options: of the gate.
        target: "cuda" or "cpu".
        machine: it runs on.
        limits: time limits of build and call.
        cache: folder of builds.
        storage: folder of stored runs.
        disabled: why measuring is switched off; "" where it is not.
        tell: told in a few words what is being done.
        say: told in a line what somebody should know now, terminal or not: who is waited for.
        internal_errors: what went wrong in the gate itself.
    """

    candidate: Path
    options: GateOptions
    target: str
    machine: Machine
    limits: Limits
    cache: Path
    storage: Path
    disabled: str = ""
    tell: Tell = lambda _: None
    say: Tell = lambda _: None
    internal_errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the list of cases and the stored run.

        Raises:
            CasesError: the list cannot be used.
        """
        self._began = time.monotonic()
        self._date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        self.expected = gate_cases.read(self.options.cases, self.target)
        self.suite = self._suite()
        self.rule = verdicts.rule(len(self.names), self.options.minimum)
        self.outcomes: dict[str, Case] = {}
        self.notes: list[str] = []
        self._clocks: dict[str, int] = {}
        self._throttled: set[str] = set()
        self._nursery: Nursery | None = None
        self._lineup: Lineup | None = None
        self._alone = contextlib.ExitStack()
        self._is_alone = False
        self._busy = ""
        self._stored, self._no_stored, self._stored_reason = self._read_stored()
        self.notes += [
            f"{name} is not on the list of expected cases ({self.options.cases}): add it"
            for name in self.suite
            if name not in self.expected
        ]

    @property
    def names(self) -> list[str]:
        """All cases: the expected ones in the order of their list, then others that the suite has."""
        return list(dict.fromkeys([*self.expected, *self.suite]))

    def measure(self, name: str) -> Case:
        """One case, measured or with the reason why not; remembered for the record."""
        found = self._unmeasurable(name) or self._crowded(name) or self._duel(name)
        self.outcomes[name] = found
        return found

    def miss(self, name: str, reason: str, text: str = "") -> None:
        """A case was not measured, for this reason; one that was keeps its figures."""
        self.outcomes.setdefault(name, unmeasured(name, self._line(name), reason, text))

    def record(self) -> Record:
        """Everything; cases that nobody accounted for did not run."""
        for name in self.names:
            found = self._unmeasurable(name)
            if found is not None and name not in self.outcomes:
                self.outcomes[name] = found
            self.miss(name, SKIPPED, "its test did not run")
        if self.target == "cuda" and not self._clocks and any(case.rounds for case in self.outcomes.values()):
            self.notes.append(
                "clocks were not seen: nvidia-ml-py is not there (pip install nvidia-ml-py) or tells none"
            )
        against = self.options.against
        base = Contestant(f"stored run {self.options.stored}" if self.options.stored else "none")
        if against is not None:
            base = Contestant(against.name, str(against), digest(against))
        return Record(
            date=self._date,
            target=self.target,
            machine=gate_record.Machine(
                tool=tool.version(),
                python=self.machine.python,
                torch=self.machine.torch,
                gpu=self.machine.gpu,
                driver=self.machine.driver,
                cuda=torch.version.cuda or "",
                processor=self.machine.processor,
                clocks=self._clocks,
                throttled=tuple(sorted(self._throttled)),
            ),
            candidate=Contestant(self.candidate.name, str(self.candidate), digest(self.candidate)),
            base=base,
            comparison=STORED if self.options.stored else INTERLEAVED,
            minimum=self.rule.minimum,
            confidence=self.rule.confidence,
            gate_confidence=verdicts.GATE_CONFIDENCE,
            seconds=round(time.monotonic() - self._began, 1),
            cases=tuple(self.outcomes[name] for name in self.names),
            notes=tuple(dict.fromkeys(self.notes)),
            internal_errors=tuple(self.internal_errors),
        )

    def close(self) -> None:
        """End all workers."""
        if self._lineup is not None:
            self._lineup.close()
        if self._nursery is not None:
            self._nursery.close()
        self._lineup = self._nursery = None
        self._alone.close()
        self._is_alone = False

    @property
    def lock_file(self) -> Path:
        """Held while anything is measured: one for each card, and one for the CPU."""
        return self.cache / "locks" / f"gate-{card.identity() if self.target == 'cuda' else 'cpu'}.lock"

    def lineup(self) -> Lineup:
        """The contestants; started when first asked for."""
        if self._lineup is None:
            device = "cuda:0" if self.target == "cuda" else "cpu"
            self._nursery = self._nursery or Nursery(perturb=False)
            against = self.options.against
            self._lineup = Lineup(
                L1_NORM, self.candidate, device, self.limits, self._nursery, self.cache, (), base=against
            )
        return self._lineup

    def _crowded(self, name: str) -> Case | None:
        """Wait until no other gate measures here, and keep others out until `close`; why not, if one does not end.

        Where no lock can be had the case is measured without one.
        """
        if not self._is_alone and not self._busy:
            path = self.lock_file
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                what = f"the gate on {self.machine.gpu if self.target == 'cuda' else 'the CPU'}"
                self._alone.enter_context(lock.held(path, LONGEST_WAIT, self.say, what))
                self._is_alone = True
            except Stop as stop:
                # Only what the system refused has a cause; a lock that is held too long has none.
                if isinstance(stop.__cause__, OSError):
                    self._measure_unlocked(path, stop.__cause__)
                else:
                    self._busy = stop.line
            except OSError as error:
                self._measure_unlocked(path, error)
        return unmeasured(name, self._line(name), BUSY, self._busy) if self._busy else None

    def _measure_unlocked(self, path: Path, error: OSError) -> None:
        """Measure although nobody can be kept out, and say so: who is alone on the machine loses nothing."""
        line = (
            f"measured without a lock, {path} cannot be locked ({error.strerror or error}): see that no other gate "
            "measures at the same time, or set KERNELPROOF_CACHE to a folder on a local disk that you can write to"
        )
        self.notes.append(line)
        self.say(line)
        self._is_alone = True

    def _duel(self, name: str) -> Case:
        stored = self._stored.get(name, ())
        return Duel(
            self.lineup(),
            name,
            self.suite[name],
            self.rule,
            stored,
            lambda doing: self.tell(f"{name}: {doing}"),
            self._look_at_clocks,
        ).run()

    def _unmeasurable(self, name: str) -> Case | None:
        """Why a case cannot be measured, known before anything is started."""
        line = self._line(name)
        if name not in self.suite:
            moved = gate_cases.renamed(self.expected, {each: str(entry.case) for each, entry in self.suite.items()})
            return moved.get(name) or unmeasured(name, line, MISSING)
        if self.disabled:
            return unmeasured(name, line, gate_record.DISABLED, self.disabled)
        if self.target == "cuda" and not self.machine.gpu:
            return unmeasured(name, line, NO_GPU, f"{self.machine.no_gpu}; --target=cpu measures on the CPU instead")
        if self.options.against is None and not self.options.stored:
            return unmeasured(name, line, NO_BASELINE, "name one: --base, --against or --stored (pytest: --against)")
        if self._no_stored:
            return unmeasured(name, line, self._stored_reason, self._no_stored)
        if self.options.stored and name not in self._stored:
            text = f"the stored run {self.options.stored} has no figures of it; store one with --benchmark-save=NAME"
            return unmeasured(name, line, NO_BASELINE, text)
        return None

    def _line(self, name: str) -> str:
        return self.expected.get(name) or str(self.suite[name].case)

    def _suite(self) -> dict[str, Entry]:
        """What is measured: the benchmarks' cases; another list than the committed one brings its own."""
        if self.options.cases == gate_cases.COMMITTED:
            return {label(entry.case): entry for entry in entries(self.target)}
        found = {}
        for name, line in self.expected.items():
            try:
                found[name] = Entry(parse(line))
            except ValueError as error:
                raise CasesError(f"{self.options.cases}: the case {name!r}: {error}") from None
        return found

    def _read_stored(self) -> tuple[dict[str, list[float]], str, str]:
        """Fractions of a copy of the stored run by case; or why it cannot be used, in words and as a reason."""
        if not self.options.stored:
            return {}, "", ""
        path = stored_file(self.storage, self.options.stored)
        if path is None:
            text = f"no stored run {self.options.stored} in {self.storage}; store one with --benchmark-save=NAME"
            return {}, text, NO_BASELINE
        try:
            run = json.loads(path.read_text(encoding="utf-8"))
            now = {benchmark_report.INFO: benchmark_report.machine_info(self.machine)}
            refused = benchmark_report.refusal(now, run["machine_info"])
            self.notes += [] if refused else benchmark_report.remarks(now, run["machine_info"])
            found = fractions(run["benchmarks"], self.candidate.stem, self.target)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            text = f"the stored run {path} cannot be read: {type(error).__name__}: {error}"
            return {}, text, NO_BASELINE
        return found, refused, ANOTHER_GPU

    def _look_at_clocks(self) -> None:
        """Note the clocks and why they are held down, right after a batch."""
        if self.target != "cuda":
            return
        self._throttled |= card.throttled()
        for name, value in card.clocks().items():
            if name.endswith("_max_mhz"):
                self._clocks[name] = value
            else:
                for word, pick in (("lowest", min), ("highest", max)):
                    key = f"{name}_{word}"
                    self._clocks[key] = pick(self._clocks.get(key, value), value)


def words(case: Case) -> str:
    """What a case came to, in a line."""
    if case.verdict == NOT_MEASURED:
        return f"{NOT_MEASURED} ({case.reason}): {case.text}"
    assert case.ratio is not None, "a measured case has a ratio"
    ratio, percent = case.ratio, (case.ratio.value - 1) * 100
    found = f"{case.verdict}: {percent:+.1f} % time, ratio {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    found += f" over {case.rounds} rounds"
    return found + (f"; {case.text}" if case.text else "")


def passes(case: Case) -> bool:
    """Whether a case's test passes."""
    return case.verdict in (SAME, FASTER)


def digest(path: Path) -> str:
    """SHA-256 of a candidate's sources, in hex: of its file, or of all sources of the package that it belongs to."""
    folder = path.parent
    files = [path]
    if (folder / "__init__.py").exists():
        files = sorted(each for each in folder.rglob("*") if each.suffix in _SOURCES and each.is_file())
    found = hashlib.sha256()
    for each in files:
        # The name of a lone file does not matter; those of a package's files do.
        name = "" if files == [path] else str(each.relative_to(folder))
        content = each.read_bytes() if each.is_file() else b""
        found.update(os.fsencode(f"{len(name)} {name} {len(content)} ") + content)
    return found.hexdigest()


def stored_file(storage: Path, named: str) -> Path | None:
    """The file of a stored run: a path, or the number (or the whole name) that pytest-benchmark gave it."""
    if Path(named).is_file():
        return Path(named)
    found = sorted([*storage.glob(f"**/{named}_*.json"), *storage.glob(f"**/{named}.json")])
    return found[-1] if found else None


def fractions(benchmarks: list[Mapping[str, object]], candidate: str, target: str) -> dict[str, list[float]]:
    """Fractions of a copy of a stored run's cases, one a round, by name; this candidate's where it has several."""
    found: dict[str, list[float]] = {}
    for own in (False, True):  # the candidate's own figures overwrite what others have
        for each in benchmarks:
            facts = each.get("extra_info")
            if not isinstance(facts, dict) or facts.get("target") != target or "of_copy_rounds" not in facts:
                continue
            name = "-".join([str(facts["shape"]), str(facts["dtype"])])
            name += "" if facts["layout"] == "contiguous" else f"-{facts['layout']}"
            if not own or f"[{candidate}-{target}-" in str(each.get("name")):
                found[name] = [float(value) for value in facts["of_copy_rounds"]]
    return found
