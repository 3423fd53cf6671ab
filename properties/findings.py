"""What can be wrong with a candidate: one closed list of kinds, and the record of one finding.

A finding is a sentence a person can act on plus the kind by which findings are counted. Nothing here knows how a
finding was made.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Kind(enum.StrEnum):
    """The kind of a finding; the value is what reports and the JSON file show."""

    WRONG_VALUE = "wrong-value"
    WRONG_SPECIAL = "wrong-special"
    NOT_WRITTEN = "not-written"
    INACCURATE = "inaccurate"
    INPUT_MODIFIED = "input-modified"
    ALIASED_OUTPUT = "aliased-output"
    OUT_OF_BOUNDS = "out-of-bounds"
    WRONG_SHAPE = "wrong-shape"
    WRONG_DTYPE = "wrong-dtype"
    WRONG_DEVICE = "wrong-device"
    WRONG_STRIDES = "wrong-strides"
    WRONG_TYPE = "wrong-type"
    WRONG_ERROR = "wrong-error"
    ACCEPTED_INVALID_INPUT = "accepted-invalid-input"
    NONDETERMINISTIC = "nondeterministic"
    STALE_RESULT = "stale-result"
    WRONG_STREAM = "wrong-stream"
    WRONG_GRADIENT = "wrong-gradient"
    STATE_LEAK = "state-leak"
    PENDING_ERROR = "pending-error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    DOES_NOT_BUILD = "does-not-build"
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not-run"


#: Kinds that end the worker process: the next example needs a fresh one.
DEADLY = frozenset({Kind.CRASH, Kind.TIMEOUT, Kind.OUT_OF_BOUNDS})


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, in plain words.

    Attributes:
        kind: how the finding is counted.
        text: one sentence, no trailing full stop needed.
        details: further lines (worst elements with got / expected / bound, the candidate's own error text).
    """

    kind: Kind
    text: str
    details: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """The sentence behind its kind."""
        return f"{self.kind}: {self.text}"
