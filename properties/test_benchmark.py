"""Speed: every case is timed in one run beside a copy of the same bytes and beside the reference."""

from __future__ import annotations

import pytest

from .benchmark_plugin import CLOCK, Benchmark
from .benchmarks import Race


@pytest.mark.benchmark(timer=CLOCK.read)
def test_time_of_a_call(race: Race, benchmark: Benchmark) -> None:
    # Pedantic mode only: calibration would wait for a clock that moves by itself.
    benchmark.pedantic(race.round, rounds=race.rounds)
    result = race.finish()
    benchmark.extra_info.update(result.facts)
    benchmark.has_error = bool(result.wrong)  # what does not count is not stored either
    if result.wrong:
        pytest.fail(result.wrong, pytrace=False)
