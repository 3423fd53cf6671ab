"""How thoroughly a run looks: three profiles of our own, every field of Hypothesis's settings set.

Hypothesis registers a profile named ``ci`` itself and loads it where ``CI`` is set; a profile made then inherits its
fields. Ours depend on no other: the same name means the same everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import ExampleDatabase


@dataclass(frozen=True)
class Profile:
    """Budgets of a run.

    Attributes:
        name: as ``--profile`` takes it.
        examples: drawn for each property, on top of its pinned cases.
        long_examples: the same for properties whose examples are a million elements.
        longest: columns of the longest drawn row.
        shrink_seconds: how long a property may look for a smaller failing case.
        deaths: how many workers a property may cost.
        call_seconds: that a candidate's calls may take under a property before the rest of its cases is left out.
    """

    name: str
    examples: int
    long_examples: int
    longest: int
    shrink_seconds: float
    deaths: int
    call_seconds: float = math.inf


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "kp-quick", examples=25, long_examples=6, longest=1 << 20, shrink_seconds=10, deaths=12, call_seconds=30
        ),
        Profile(
            "kp-default",
            examples=100,
            long_examples=100,
            longest=1 << 21,
            shrink_seconds=15,
            deaths=12,
            call_seconds=60,
        ),
        Profile(
            "kp-nightly",
            examples=2000,
            long_examples=2000,
            longest=1 << 24,
            shrink_seconds=120,
            deaths=40,
            call_seconds=1200,
        ),
    )
}
DEFAULT = "kp-default"


def hypothesis_settings(examples: int, database: ExampleDatabase | None) -> settings:
    """Settings with every field given: nothing is inherited from a profile that happens to be loaded."""
    return settings(
        max_examples=examples,
        derandomize=False,
        database=database,
        verbosity=Verbosity.quiet,
        phases=(Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
        stateful_step_count=50,
        report_multiple_bugs=False,
        # A candidate's own slowness is measured elsewhere, and a hang is caught by the runner's own limit.
        suppress_health_check=list(HealthCheck),
        deadline=None,
        print_blob=False,
        backend="hypothesis",
    )
