"""Examine one property of one subject: draw cases, run them, shrink a failure, confirm it in a fresh worker.

Hypothesis draws and shrinks; `search` remembers, reduces and confirms. After two properties under which the candidate
hung, the rest run one small case each and count as `not-examined`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import hypothesis
from hypothesis.database import ExampleDatabase

from .cases import Case, features
from .examination import Examination, Property, run_case
from .profiles import Profile, hypothesis_settings
from .reduction import size
from .search import RefutedError, Search
from .subject import FIRST_PROBE, Subject

#: Properties under which a candidate hung, from which on the rest run one small case each.
_HUNG_PROPERTIES = 2


class PrefixedDatabase(ExampleDatabase):
    """A database in which every property of every candidate has keys of its own."""

    def __init__(self, inner: ExampleDatabase, prefix: str) -> None:
        super().__init__()
        self._inner = inner
        self._prefix = os.fsencode(prefix) + b"\0"

    def save(self, key: bytes, value: bytes) -> None:
        """See `ExampleDatabase`."""
        self._inner.save(self._prefix + key, value)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """See `ExampleDatabase`."""
        return self._inner.fetch(self._prefix + key)

    def delete(self, key: bytes, value: bytes) -> None:
        """See `ExampleDatabase`."""
        self._inner.delete(self._prefix + key, value)


def examine(
    subject: Subject, prop: Property, profile: Profile, seed: int, database: ExampleDatabase | None = None
) -> Examination:
    """Examine one property of one subject within a profile's budgets.

    The subject must have been probed and be sound (`Subject.probe` returned None).
    """
    search = Search(subject, prop, profile)
    began = time.monotonic()
    if len(subject.hung) >= _HUNG_PROPERTIES:
        seen = run_case(subject, prop, FIRST_PROBE, result=search.result)
        search.result.outcome = "failed" if seen.findings else "not-examined"
        search.result.findings, search.result.case = tuple(seen.findings), FIRST_PROBE if seen.findings else None
        search.result.reason = f"the candidate hung under {' and '.join(subject.hung)}; one small case was run"
    else:
        _search(search, seed, database)
        search.conclude()
        _admit(search.result)
        if search.result.outcome == "passed" and subject.runner.gone:
            search.result.outcome, search.result.reason = "not-examined", subject.runner.gone
    search.result.seconds = time.monotonic() - began
    return search.result


def _search(search: Search, seed: int, database: ExampleDatabase | None) -> None:
    subject, prop, profile = search.subject, search.result.property, search.profile
    for case in sorted(prop.pinned + (prop.pinned_on_gpu if subject.runner.on_gpu else ()), key=size):
        if subject.compulsory(case) or _supported(subject, case):
            try:
                search.run(case)
            except RefutedError:
                break

    def drawn(case: Case) -> None:
        for name, metric in search.run(case).items():
            hypothesis.target(min(metric.value, 1e300), label=name)

    if prop.cases is None or search.small_enough:
        return
    examples = profile.long_examples if prop.long else profile.examples
    keyed = PrefixedDatabase(database, f"{prop.name} {subject.target} {subject.path}") if database else None
    test = hypothesis.given(prop.cases(subject.domain, profile))(drawn)
    test = hypothesis.seed(seed)(hypothesis_settings(examples, keyed)(test))
    try:
        test()
    except RefutedError:
        return
    except hypothesis.errors.FlakyFailure:
        # What failed has passed before, or passes when it is run again: the candidate's doing, if a case failed at all.
        if not search.refuted:
            raise


def _admit(result: Examination, refused: str = "the candidate refused every case of it, as it may") -> None:
    """Where no case could be run, or the candidate took none, nothing was examined."""
    if result.examples or result.findings:
        return
    if result.unsupported:
        result.outcome, result.reason = "not-examined", refused
    elif result.not_run:
        result.outcome, result.reason = "not-examined", next(iter(result.not_run.values()))


def replay(subject: Subject, prop: Property, case: Case) -> Examination:
    """Run exactly one case, in a fresh worker."""
    search = Search(subject, prop, Profile("replay", 1, 1, 1, 0.0, 1), exactly=True)
    began = time.monotonic()
    subject.renew()
    try:
        search.run(case)
    except RefutedError:
        search.conclude()
    search.result.seconds = time.monotonic() - began
    _admit(search.result, "the candidate does not support this case")
    return search.result


def _supported(subject: Subject, case: Case) -> bool:
    return features(case) <= subject.supported
