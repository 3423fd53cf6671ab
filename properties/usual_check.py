"""The check that most harnesses make, so that the kill matrix can say what it lets through.

One input, of the shape of the benchmark's rows and drawn as its own (uniform in [0, 1)); the eager model first, the
candidate behind it, in one process and on the same tensor; the same shape, and `torch.allclose`. It is made in a worker
like any other, so that a candidate which crashes, hangs or attacks the check ends as a word; and as harnesses make it:
fresh memory is what it happens to be, nothing lies behind the input that would mind being read, and no state is looked
at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from . import inputs
from .candidate_loading import load_module, make_model
from .cases import Case
from .findings import Kind
from .gpu import GpuGoneError
from .l1_norm import L1_NORM
from .limits import Limits
from .memory import OutOfMemoryError
from .observation import Outcome
from .options import Options
from .process import Nursery
from .protocol import Message
from .runner import Runner
from .subject import load_finding

#: Absolute and relative tolerances of `torch.allclose`: KernelBench asks for the second, careful harnesses for the
#: first.
TOLERANCES = (1e-4, 1e-2)
#: Rows as long as the benchmark's; so few that a CPU takes a tenth of a second.
CASE = Case((64, 65535), values="positive", seed=1)
#: Bytes behind the input that may be read: an ordinary heap goes on there.
_SLACK = 1 << 20


class UsualCheck(torch.nn.Module):
    """The check, in the form of a candidate: its result tells by its value how many tolerances are kept."""

    def __init__(self, candidate: str, reference: str, tag: str) -> None:
        super().__init__()
        self.eager = make_model(load_module(Path(reference), tag), "Model", ())
        self.model = make_model(load_module(Path(candidate), tag), "ModelNew", ())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compare the candidate with the eager model.

        Raises:
            Exception: whatever the candidate raises, or comparing does: of what is no tensor, of other types.
        """
        expected: torch.Tensor = self.eager(x)  # type: ignore[assignment]
        got: torch.Tensor = self.model(x)  # type: ignore[assignment]
        kept = [
            got.shape == expected.shape and torch.allclose(got, expected, rtol=tolerance, atol=tolerance)
            for tolerance in TOLERANCES
        ]
        return torch.full(expected.shape, float(sum(kept)), dtype=expected.dtype, device=expected.device)


class _Checker(Runner):
    """A runner that puts `UsualCheck` before the candidate."""

    def what(self) -> Message:
        """The request to load both; the candidate's builds lie where they always do."""
        init = [str(self.candidate), str(L1_NORM.reference), self.tag]
        return {**super().what(), "path": __file__, "model": UsualCheck.__name__, "init": init}


@dataclass(frozen=True)
class Verdict:
    """What the usual check says: for each of `TOLERANCES` whether it accepts, or a word for how it ended instead."""

    accepts: tuple[bool, ...] = ()
    ended: str = ""

    def words(self) -> tuple[str, ...]:
        """A word for each tolerance."""
        if self.ended:
            return (self.ended,) * len(TOLERANCES)
        return tuple("accepts" if accepted else "rejects" for accepted in self.accepts)


class Checks:
    """The usual check of many candidates: one nursery, whose workers' memory is not made recognisable."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._nursery = Nursery(perturb=False)

    def check(self, candidate: Path, target: str, limits: Limits) -> Verdict:
        """Check one candidate on one target.

        Args:
            candidate: its file.
            target: ``cpu`` or ``cuda``.
            limits: how long it may take.
        """
        device = "cuda:0" if target == "cuda" else "cpu"
        runner = _Checker(candidate, (), limits, self._nursery, self._options.cache, device)
        try:
            failure = runner.load()
            if failure is not None:
                return Verdict(ended=_word(load_finding(failure).kind))
            given = inputs.build(CASE, runner.home)
            seen = runner.observe(given, slack=_SLACK, first=True)
        except (GpuGoneError, OutOfMemoryError) as error:
            return Verdict(ended=f"not run: {error}")
        finally:
            runner.close()
        if seen.outcome is Outcome.RAISED:
            assert seen.error is not None
            return Verdict(ended=f"raises {seen.error.type}")
        if seen.outcome is not Outcome.RETURNED or seen.output is None:
            return Verdict(ended="hangs" if seen.outcome is Outcome.TIMED_OUT else "crashes")
        kept = int(seen.output.view(-1)[0])
        return Verdict(tuple(number >= len(TOLERANCES) - kept for number in range(len(TOLERANCES))))

    def close(self) -> None:
        """End the nursery."""
        self._nursery.close()


def _word(kind: Kind) -> str:
    return "hangs" if kind is Kind.TIMEOUT else "does not load"
