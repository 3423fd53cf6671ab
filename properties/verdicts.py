"""The gate's statistics: from times that were taken in turns to a verdict, for one case and for all of them together.

Nothing here measures, runs or knows torch; times come in, words go out, and no chance is involved.

- Only *paired ratios* are looked at: time of the candidate / time of its base, of the same round. What changes from
  round to round or from run to run (clocks, neighbours, the mode a card is in) meets both and goes out of the ratio.
- A *batch* is a number of rounds after one preparation of the contestants. Where their memory came to lie then is a
  property of the batch, not of the code, and may cost a few percent. So slower (or faster) is said only when two
  batches in a row say so, with everything prepared anew between them; see `decide`.
- An interval is that of the percentile bootstrap of the median. The median of a resample of n values is at most the
  j-th smallest of them exactly when at least half of n draws with probability j/n succeed: a binomial tail, so that
  the interval is known without resampling (Efron 1979, "Bootstrap methods: another look at the jackknife", section 3).
  Ends are rounded outwards to values that were seen; it is then at least as wide as the interval that holds for any
  distribution (test_verdicts.py looks).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ci.gate_record import FASTER, SAME, SLOWER, UNDECIDED, Estimate

#: The least effect that counts. A choice: 5 % have to be found in nearly every gate, so the bar lies well below, and as
#: far above what single batches of equal code are seen to differ by, which `test_verdicts.py` takes to be 0.6 % each.
MINIMUM = 0.03
#: With this probability at least, a gate of identical code says slower (or faster) of none of its cases.
GATE_CONFIDENCE = 0.999
#: Batches that are measured at most before a case is left undecided.
BATCHES = 4
#: Rounds of the first batch. Each further one has twice as many: what is not decided yet wants more precision.
ROUNDS = 31
#: With fewer the interval would have no ends at the confidence that 30 to 100 cases ask for.
LEAST_ROUNDS = 11
#: Resamples and seed where two runs are compared, whose rounds are no pairs.
_RESAMPLES, _SEED = 9999, 20260101

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """What a verdict takes.

    Attributes:
        minimum: the least effect that counts, such as 0.03.
        confidence: of each interval (two-sided).
        batches: that are measured at most.
    """

    minimum: float
    confidence: float
    batches: int = BATCHES


def rule(
    cases: int, minimum: float = MINIMUM, gate_confidence: float = GATE_CONFIDENCE, batches: int = BATCHES
) -> Rule:
    """The rule for a gate of so many cases: their number decides how sure each interval has to be.

    A false "slower" takes two batches in a row, each with its interval above 1 by chance: alpha^2 for one of the
    ``batches - 1`` pairs of a case, where alpha is the probability at one end of an interval. All pairs of all cases
    together (Bonferroni) are to stay below ``1 - gate_confidence``.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not (cases > 0 and batches > 1 and 0 < minimum < 1 and 0 < gate_confidence < 1):
        raise ValueError(
            f"no rule for {cases} cases, minimum {minimum}, confidence {gate_confidence}, {batches} batches"
        )
    alpha = math.sqrt((1 - gate_confidence) / (cases * (batches - 1)))
    return Rule(minimum, 1 - 2 * alpha, batches)


def rounds_of(batch: int, first: int) -> int:
    """How many rounds batch number ``batch`` (from 0) has; odd, so that a median is one of them."""
    return ((first | 1) << batch) | 1


@cache
def _end(rounds: int, confidence: float) -> int:
    """The place, from 0, of the interval's lower end among the sorted values; -1 where there are too few for one."""
    from scipy.stats import binom  # here: a second or two, which every run of pytest would wait for

    places = np.arange(rounds // 2 + 1)
    # At most the j-th smallest: at least this many of the draws fall on the j smallest.
    half = (rounds + 1) // 2
    tails = binom.sf(half - 1, rounds, places / rounds)
    return int(np.count_nonzero(tails <= (1 - confidence) / 2)) - 2


def intervals(ratios: Values, confidence: float) -> tuple[Values, Values, Values]:
    """Median, lower and upper end along the last axis; ends are 0 and infinity where the rounds are too few."""
    rounds = ratios.shape[-1]
    ordered = np.sort(ratios, axis=-1)
    end = _end(rounds, confidence)
    middle = np.median(ordered, axis=-1)
    if end < 0:
        return middle, np.zeros_like(middle), np.full_like(middle, np.inf)
    return middle, ordered[..., end], ordered[..., rounds - 1 - end]


def words(ratios: Values, controls: Values, given: Rule) -> npt.NDArray[np.str_]:
    """What single batches say: faster, same, slower or undecided.

    Args:
        ratios: candidate / base, one a round, along the last axis.
        controls: copy / copy of the same rounds: what the same work differed from itself.
        given: the rule.
    """
    middle, low, high = intervals(ratios, given.confidence)
    calm = np.median(controls, axis=-1)
    # An effect counts only beyond what the copy differs from itself. How much single rounds differ is in the interval.
    unrest = np.maximum(calm, 1 / calm) - 1
    least = 1 + np.maximum(given.minimum, unrest)
    inside = 1 + given.minimum
    found = np.full(middle.shape, UNDECIDED, dtype="<U12")
    found[(low >= 1 / inside) & (high <= inside)] = SAME
    found[(middle > least) & (low > 1)] = SLOWER
    found[(middle < 1 / least) & (high < 1)] = FASTER
    return found


def decide(said: Sequence[str], given: Rule) -> str | None:
    """The verdict after these batches; None where another one is to be measured.

    Two batches in a row that agree decide. A first "same", with nothing but undecided batches before it, decides
    alone: no one is accused by it.
    """
    last = said[-1]
    if last != UNDECIDED and (said[-2:-1] == [last] or (last == SAME and set(said) <= {SAME, UNDECIDED})):
        return last
    return UNDECIDED if len(said) >= given.batches else None


def deciding(said: Sequence[str]) -> int:
    """How many of the last batches the verdict's figures are taken from: those that agree with the last."""
    count = 0
    for word in reversed(said):
        if word != said[-1]:
            break
        count += 1
    return count


def estimate(values: Sequence[float], confidence: float) -> Estimate:
    """Median and interval for a report; with too few values for an interval the smallest and the largest of them."""
    middle, low, high = (float(each) for each in intervals(np.asarray(values, dtype=np.float64), confidence))
    return Estimate(middle, low or min(values), high if math.isfinite(high) else max(values))


def between_runs(now: Sequence[float], stored: Sequence[float], confidence: float) -> Estimate:
    """The ratio of two runs' medians, stored / now, with the interval of the percentile bootstrap (seeded).

    Args:
        now: fractions of a copy's speed, one a round.
        stored: those of an earlier run; its rounds and those of now are no pairs.
        confidence: of the interval.
    """
    from scipy.stats import bootstrap  # here: see `_end`

    first, second = np.asarray(now, dtype=np.float64), np.asarray(stored, dtype=np.float64)
    value = float(np.median(second) / np.median(first))
    if min(np.ptp(first), np.ptp(second)) == 0 and max(np.ptp(first), np.ptp(second)) == 0:
        return Estimate(value, value, value)
    found = bootstrap(
        (first, second),
        lambda a, b, axis: np.median(b, axis=axis) / np.median(a, axis=axis),
        confidence_level=confidence,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return Estimate(value, min(float(found.low), value), max(float(found.high), value))


def word_of(found: Estimate, given: Rule) -> str:
    """What one interval says, without a control of its own; for the comparison of two runs."""
    inside = 1 + given.minimum
    if found.low >= 1 / inside and found.high <= inside:
        return SAME
    if found.value > inside and found.low > 1:
        return SLOWER
    return FASTER if found.value < 1 / inside and found.high < 1 else UNDECIDED
