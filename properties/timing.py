"""What is done with times once they were taken: a clock for pytest-benchmark, rounds, figures, and what cannot be true.

Nothing here measures, runs or knows torch. Only ratios of times from one run are claimed: contestants take turns, one
round after the other in alternating order, so that drift and neighbours' noise meet all of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

#: The contestants' names. The copy is the yardstick, so its best round counts; of all others the median.
CANDIDATE, BASE, COPY, EAGER, COMPILE = "candidate", "base", "copy", "eager", "compile"
#: Bytes a second that no core moves to and from its first cache: three loads and stores of 64 bytes at 5 GHz are fewer.
_A_CORE = 1e12
#: A call so many times as fast as the copy has not done its work, if it is of so many bytes: the copy of fewer may take
#: a thousand times as long on a busy CPU as on an idle one.
_FASTER_THAN_COPY, _LARGE = 20, 64 << 20
#: Part of what a card's memory can do that a copy reaches where it has the card to itself, at least: 0.87 and 0.90 were
#: measured (H200, H100), and a neighbour who is as busy leaves half of that.
_COPY_REACHES = 0.6
#: Bytes, in caches of a GPU, from which on the cache is no part of a time: a timed sequence touches as many, and a copy
#: of as many reaches what the memory can do.
CACHES = 4
#: How a message starts that says that it does not.
SHARED = "something else uses the card"
#: A round of the fastest lasts this many seconds: the clock resolves 0.5 us on a GPU and less on a CPU, so below 0.1 %
#: of it. Beside one that takes a thousand times as long it lasts less: nobody asks for 0.1 % there.
ROUND_SECONDS = 2e-3
_MOST_CALLS = 100
#: Seconds that the rounds of a case may take, all contestants together, as long as there are `LEAST_ROUNDS`: fewer have
#: no median worth the name.
CASE_SECONDS = 6.0
LEAST_ROUNDS, MOST_ROUNDS = 5, 31
#: Blocks that a result is looked at in where it is too large to be looked at whole.
_BLOCKS = 16


class Clock:
    """A clock that stands still until a measured time is added to it: what pytest-benchmark reads.

    It works with ``benchmark.pedantic`` alone. Automatic calibration waits for a clock to advance by itself; this one
    says so instead of letting it wait for ever.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again at 0."""
        self._seconds = 0.0
        self._idle_reads = 0

    def advance(self, seconds: float) -> None:
        """Add a measured time.

        Raises:
            ValueError: it is no positive finite number.
        """
        if not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"a measured time is a positive number of seconds, got {seconds!r}")
        self._seconds += seconds
        self._idle_reads = 0

    def read(self) -> float:
        """Seconds so far.

        Raises:
            RuntimeError: it was read three times in a row (pedantic mode reads it twice, between two rounds).
        """
        self._idle_reads += 1
        if self._idle_reads > 2:
            raise RuntimeError("this clock moves only when a measured time is added: use benchmark.pedantic(...)")
        return self._seconds


@dataclass(frozen=True)
class Plan:
    """How a case is timed: ``rounds`` rounds, in each of which every contestant makes ``calls`` calls in a row."""

    rounds: int
    calls: int


def plan(pilots: Sequence[float]) -> Plan:
    """A plan from one time of each contestant, in seconds: calls as the fastest needs them and the slowest allows."""
    wanted = math.ceil(ROUND_SECONDS / min(pilots))
    affordable = int(CASE_SECONDS / (sum(pilots) * LEAST_ROUNDS))
    calls = max(1, min(wanted, affordable, _MOST_CALLS))
    rounds = int(CASE_SECONDS / (sum(pilots) * calls))
    return Plan(min(max(rounds, LEAST_ROUNDS), MOST_ROUNDS), calls)


def order(names: Sequence[str], turn: int) -> list[str]:
    """Who goes when in round number ``turn``: each follows its neighbours as often as it precedes them."""
    return list(names) if turn % 2 == 0 else list(reversed(names))


@dataclass(frozen=True)
class Bus:
    """What can be read and written at most.

    Attributes:
        bytes_per_second: 0 where it is not known.
        cache: bytes that are there without reading them: a GPU's L2 cache.
        what: whose limit it is, in words.
        whole: whether a copy can have all of it; a part of a card (MIG) cannot.
    """

    bytes_per_second: float = 0.0
    cache: int = 0
    what: str = "the card's memory"
    whole: bool = False

    @classmethod
    def of_cores(cls, cores: int) -> Bus:
        """The limit of a CPU: that of its fastest caches, since a small input may be in them."""
        return cls(cores * _A_CORE, what=f"{cores} cores' caches" if cores > 1 else "a core's cache")


def figures(times: Mapping[str, Sequence[float]], nbytes: int) -> dict[str, float]:
    """Figures of a case.

    Args:
        times: seconds of a call, one a round, of each contestant; the candidate and the copy are among them.
        nbytes: read once and written once.

    Returns:
        ``seconds`` (median), ``gb_per_s``, ``of_copy`` (1 is the speed of a copy), ``copy_seconds`` (best), and for
        eager and compile, if they ran, ``vs_...`` (above 1 the candidate is faster) and ``..._seconds`` (median).
    """
    middle = median(times[CANDIDATE])
    best_copy = min(times[COPY])
    found = {
        "seconds": middle,
        "gb_per_s": nbytes / middle / 1e9,
        "of_copy": best_copy / middle,
        "copy_seconds": best_copy,
    }
    for name in (EAGER, COMPILE):
        if times.get(name):
            found[f"{name}_seconds"] = median(times[name])
            found[f"vs_{name}"] = found[f"{name}_seconds"] / middle
    return found


def impossible(fastest: float, best_copy: float, nbytes: int, footprint: int, bus: Bus) -> str:
    """Why a time cannot be that of a call which did its work; "" where it can.

    Args:
        fastest: seconds of the candidate's fastest round.
        best_copy: seconds of the copy's fastest round.
        nbytes: that a call reads and writes.
        footprint: bytes that a sequence of calls reads and writes before it comes back to the first input.
        bus: of the GPU or CPU.
    """
    # One cache of the bytes read may still be there from the round before, one of those written may not have left yet.
    through = max(1 - 2 * bus.cache / footprint, 0.0) * nbytes
    if bus.bytes_per_second and through / fastest > bus.bytes_per_second:
        return (
            f"invalid measurement: {nbytes / fastest / 1e9:.0f} GB/s, while {bus.what} can do at most "
            f"{bus.bytes_per_second / 1e9:.0f} GB/s: the call did not do its work within the time measured"
        )
    if nbytes >= _LARGE and fastest * _FASTER_THAN_COPY < best_copy:
        return (
            f"invalid measurement: a call takes {seconds(fastest)} where a copy of the same bytes takes "
            f"{seconds(best_copy)}: the call did not do its work within the time measured"
        )
    return ""


def shared(copy: float, nbytes: int, bus: Bus) -> str:
    """Why times of a card are not those of the code alone; "" where nothing speaks for it.

    Whoever works beside both contestants adds the same to both times, and so hides what one takes longer.

    Args:
        copy: seconds of a copy, a middle one: the best may have slipped through between the other's turns.
        nbytes: that it reads and writes, of one stretch of memory.
        bus: of the card.
    """
    if not bus.whole or nbytes < CACHES * bus.cache or nbytes / copy >= _COPY_REACHES * bus.bytes_per_second:
        return ""
    return (
        f"{SHARED}: a copy moves {nbytes / copy / 1e9:.0f} GB/s, of {bus.bytes_per_second / 1e9:.0f} that its memory "
        "can do; beside that what is slower would pass for the same"
    )


def seconds(value: float) -> str:
    """A time for a person."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def blocks(length: int, most: int, chooser: random.Random) -> list[slice]:
    """Slices of ``range(length)`` to look at: all of it, or ``most`` in random places, both ends among them."""
    if length <= most:
        return [slice(0, length)]
    count = min(_BLOCKS, most)
    size = most // count
    edges = [length * index // count for index in range(count + 1)]
    starts = [chooser.randint(low, max(high - size, low)) for low, high in pairwise(edges)]
    starts[0], starts[-1] = 0, length - size
    return [slice(start, start + size) for start in starts]
