"""The gate's statistics: how often simulated gates accuse identical code, and how often they find what was planted.

One gate is 30 cases. A round's time is the work, times what the machine does to it: see `Noise`. The same functions
that judge a real gate judge these; rules that are known to be bad are put to the same test and fail it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, bootstrap

from ci.gate_record import FASTER, SAME, SLOWER, UNDECIDED, Estimate
from properties import verdicts
from properties.verdicts import Rule, Values

GATES, CASES = 1000, 30
RULE = verdicts.rule(CASES)


@dataclass(frozen=True)
class Noise:
    """What a machine does to times; every figure is the standard deviation or probability of one factor.

    Attributes:
        jitter: of every round, heavy-tailed (Student's t with 3 degrees of freedom).
        mode: by how much a whole run is slower in its second mode, which it is in half of the time.
        torn: probability that only one contestant of a round meets the other mode.
        slow: probability that one time of a round is 1.2 to 3 times as long.
        drift: from the first to the last round of a batch.
        place: of a batch and contestant: where its memory came to lie.
    """

    jitter: float = 0.008
    mode: float = 0.12
    torn: float = 0.05
    slow: float = 0.02
    drift: float = 0.05
    place: float = 0.006

    def batch(self, chance: np.random.Generator, shape: tuple[int, ...], rounds: int) -> Values:
        """Times of copy, candidate, base and copy, of equal work: (4, *shape, rounds)."""
        full = (4, *shape, rounds)
        times = np.exp(self.jitter * np.clip(chance.standard_t(3, full), -60, 60))
        times *= np.where(chance.random((1, *shape, 1)) < 0.5, 1 + self.mode, 1.0)
        times *= np.where(chance.random(full) < self.torn, 1 + self.mode, 1.0)
        times *= np.where(chance.random(full) < self.slow, chance.uniform(1.2, 3.0, full), 1.0)
        places = chance.standard_normal((3, *shape, 1))
        times *= np.exp(self.place * places[[0, 1, 2, 0]])  # the copy's memory is the same in both of its turns
        # Position within the round: who goes first takes turns, so the drift within it does, too.
        turns = np.arange(rounds)
        positions = np.array([0, 1, 2, 3])[:, None] * np.where(turns % 2, -1, 1) + np.where(turns % 2, 3, 0)
        steps = (turns + positions / 4) / rounds
        return np.asarray(times * (1 + self.drift * steps.reshape(4, *([1] * len(shape)), rounds)))


USUAL = Noise()
#: What a judge makes of batches: words for (gates, cases), given a way to measure further batches of some of them.
Measure = Callable[[int, tuple[int, ...]], Values]


def gate(measure: Callable[[int, npt.NDArray[np.bool_]], Values], gates: int, given: Rule) -> npt.NDArray[np.str_]:
    """The verdicts of all cases of all gates, (gates, CASES), as `duel` comes to them: batch by batch, until decided.

    Args:
        measure: times of batch number N for the cases that still want one.
        gates: how many.
        given: the rule.
    """
    verdict = np.full((gates, CASES), "", dtype="<U12")
    said: dict[tuple[int, int], list[str]] = {}
    for number in range(given.batches):
        waiting = verdict == ""
        if not waiting.any():
            break
        times = measure(number, waiting)
        found = verdicts.words(times[1] / times[2], times[3] / times[0], given)
        for (at, case), word in zip(np.argwhere(waiting), found, strict=True):
            history = said.setdefault((int(at), int(case)), [])
            history.append(str(word))
            verdict[at, case] = verdicts.decide(history, given) or ""
    return verdict


def simulated(noise: Noise, gates: int, seed: int, planted: float = 0.0, given: Rule = RULE) -> npt.NDArray[np.str_]:
    """Verdicts of simulated gates; in each, one case's candidate takes ``planted`` more time."""
    chance = np.random.default_rng(seed)
    victims = chance.integers(CASES, size=gates)

    def measure(number: int, waiting: npt.NDArray[np.bool_]) -> Values:
        rows, cases = np.nonzero(waiting)
        times = noise.batch(chance, (len(rows),), verdicts.rounds_of(number, verdicts.ROUNDS))
        times[1][victims[rows] == cases] *= 1 + planted
        return times

    found = gate(measure, gates, given)
    return found if planted == 0 else found[np.arange(gates), victims][:, None]


def accused(found: npt.NDArray[np.str_]) -> float:
    """The share of gates that say slower of at least one case."""
    return float((found == SLOWER).any(axis=1).mean())


NOISES = {
    "usual": USUAL,
    "calm": Noise(jitter=0.001, torn=0.0, slow=0.0, drift=0.0, place=0.002),
    "restless": Noise(jitter=0.02, torn=0.1, slow=0.05, drift=0.1, place=0.006),
}


@pytest.mark.parametrize("name", NOISES)
def test_identical_code_is_called_slower_in_fewer_than_one_gate_of_a_hundred(name: str) -> None:
    found = simulated(NOISES[name], GATES, seed=1)
    assert accused(found) < 0.01
    assert (found == SAME).mean() > 0.99, "and nearly every case is decided"


@pytest.mark.parametrize("name", NOISES)
def test_five_percent_in_one_case_of_thirty_are_found_in_over_95_of_a_hundred_gates(name: str) -> None:
    assert accused(simulated(NOISES[name], GATES, seed=2, planted=0.05)) > 0.95


def test_twelve_percent_saved_are_called_faster() -> None:
    assert (simulated(USUAL, 300, seed=3, planted=-0.12) == FASTER).mean() > 0.95


def test_one_percent_is_below_the_minimum_and_is_not_called_slower() -> None:
    assert accused(simulated(USUAL, GATES, seed=4, planted=0.01)) < 0.01


# --- rules that are known to be bad fail the same test ----------------------------------------------------------------


def test_medians_of_separate_runs_accuse_identical_code() -> None:
    # Candidate and base each in a run of its own: each run has a mode of its own, and its rounds agree with themselves.
    chance, shape = np.random.default_rng(5), (GATES, CASES)
    candidate = USUAL.batch(chance, shape, verdicts.ROUNDS)[1]
    base = USUAL.batch(chance, shape, verdicts.ROUNDS)[1]
    found = np.where(np.median(candidate, axis=-1) > 1.03 * np.median(base, axis=-1), SLOWER, SAME)
    assert accused(found) > 0.9


def test_without_a_correction_for_the_number_of_cases_identical_code_is_accused() -> None:
    # One batch at 95 % each, and any effect counts: the usual test, thirty times over.
    chance = np.random.default_rng(6)
    noise = Noise(place=0.0)
    times = noise.batch(chance, (GATES, CASES), verdicts.ROUNDS)
    _, low, _ = verdicts.intervals(times[1] / times[2], 0.95)
    assert accused(np.where(low > 1, SLOWER, SAME)) > 0.3


def test_one_batch_takes_the_place_of_memory_for_the_code() -> None:
    # Where memory lies differs by a few percent, the same in all rounds of a batch: no interval sees that.
    noise = Noise(place=0.01)
    assert accused(simulated(noise, 300, seed=7)) < 0.05
    times = noise.batch(np.random.default_rng(7), (300, CASES), verdicts.ROUNDS)
    assert accused(verdicts.words(times[1] / times[2], times[3] / times[0], RULE)) > 0.2


def test_means_are_led_astray_by_single_slow_rounds() -> None:
    noise = Noise(slow=0.05)
    times = noise.batch(np.random.default_rng(8), (GATES, CASES), verdicts.ROUNDS)
    assert accused(np.where(times[1].mean(-1) > 1.03 * times[2].mean(-1), SLOWER, SAME)) > 0.9


# --- the parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [15, 31, 63])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_interval_is_that_of_scipys_bootstrap_rounded_outwards(rounds: int, confidence: float) -> None:
    sample = np.random.default_rng(rounds).lognormal(0, 0.05, rounds)
    theirs = bootstrap(
        (sample,),
        np.median,
        confidence_level=confidence,
        n_resamples=20000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    ours = verdicts.estimate(list(sample), confidence)
    ordered = list(np.sort(sample))
    assert ours.value == np.median(sample)
    for end, other, outwards in ((ours.low, theirs.low, -1), (ours.high, theirs.high, 1)):
        assert 0 <= outwards * (ordered.index(end) - ordered.index(other)) <= 1


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, RULE.confidence, 0.999])
def test_the_interval_is_never_narrower_than_the_one_that_holds_for_any_distribution(confidence: float) -> None:
    for rounds in range(verdicts.LEAST_ROUNDS, 260, 2):
        end = verdicts._end(rounds, confidence)
        assert end < 0 or binom.cdf(end, rounds, 0.5) <= (1 - confidence) / 2


def test_the_least_number_of_rounds_has_an_interval_for_a_hundred_cases() -> None:
    for cases in (1, 30, 100):
        assert verdicts._end(verdicts.LEAST_ROUNDS, verdicts.rule(cases).confidence) >= 0
    assert verdicts._end(5, RULE.confidence) < 0


def test_too_few_rounds_decide_nothing() -> None:
    assert verdicts.words(np.full((1, 5), 2.0), np.ones((1, 5)), RULE)[0] == UNDECIDED
    assert verdicts.estimate([1.0, 2.0, 4.0], 0.99) == Estimate(2.0, 1.0, 4.0)


def test_an_effect_counts_only_beyond_what_the_copy_differs_from_itself() -> None:
    ratios = np.full((1, 31), 1.08)
    assert verdicts.words(ratios, np.ones((1, 31)), RULE)[0] == SLOWER
    restless = np.where(np.arange(31) % 2, 1.15, 0.9)[None]
    assert verdicts.words(ratios, restless, RULE)[0] == UNDECIDED
    assert verdicts.words(2 * ratios, restless, RULE)[0] == SLOWER


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("same", SAME),
        ("undecided same", SAME),
        ("slower", None),
        ("slower slower", SLOWER),
        ("slower undecided slower", None),
        ("slower same", None),
        ("slower same same", SAME),
        ("slower same slower same", UNDECIDED),
        ("slower faster faster", FASTER),
        ("faster", None),
        ("undecided undecided undecided", None),
        ("undecided undecided undecided undecided", UNDECIDED),
        ("undecided undecided slower slower", SLOWER),
    ],
)
def test_two_batches_in_a_row_decide_and_same_needs_one(said: str, verdict: str | None) -> None:
    assert verdicts.decide(said.split(), RULE) == verdict


def test_figures_are_those_of_the_batches_that_decided() -> None:
    assert verdicts.deciding(["slower", "same", "same"]) == 2
    assert verdicts.deciding(["undecided", "slower", "slower"]) == 2


def test_more_cases_ask_for_surer_intervals() -> None:
    assert verdicts.rule(1).confidence < verdicts.rule(30).confidence < verdicts.rule(300).confidence
    assert verdicts.rule(30).confidence == pytest.approx(0.9933, abs=1e-4)
    with pytest.raises(ValueError, match="no rule for 0 cases"):
        verdicts.rule(0)


def test_batches_double_and_are_odd() -> None:
    assert [verdicts.rounds_of(batch, 31) for batch in range(4)] == [31, 63, 125, 249]
    assert [verdicts.rounds_of(batch, 10) for batch in range(2)] == [11, 23]


def test_two_runs_are_compared_through_their_medians() -> None:
    chance = np.random.default_rng(9)
    stored, now = chance.normal(0.95, 0.004, 31), chance.normal(0.90, 0.004, 31)
    found = verdicts.between_runs(list(now), list(stored), RULE.confidence)
    assert found.low < 0.95 / 0.90 < found.high
    assert verdicts.word_of(found, RULE) == SLOWER
    assert verdicts.between_runs(list(now), list(stored), RULE.confidence) == found, "the seed is fixed"
    assert verdicts.word_of(verdicts.between_runs([0.9] * 5, [0.9] * 5, RULE.confidence), RULE) == SAME
    assert verdicts.word_of(Estimate(0.9, 0.89, 0.91), RULE) == FASTER
    assert verdicts.word_of(Estimate(1.04, 0.99, 1.1), RULE) == UNDECIDED
