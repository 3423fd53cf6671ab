"""The properties that need no expected value can fail by themselves: here an oracle finds everything right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from .. import engine, invariances, values
from ..cases import parse
from ..examination import Examination, Property
from ..l1_norm import L1_NORM
from ..operators import Assessment
from ..profiles import Profile
from .conftest import MakeSubject

QUICK = Profile("test", examples=20, long_examples=3, longest=1 << 17, shrink_seconds=4, deaths=12)
BLIND = replace(L1_NORM, assess=lambda *_: Assessment(None))
RIGHT = "y = x / x.abs().mean(1, keepdim=True)\n"


def examined(prop: Property, make: MakeSubject, body: str) -> Examination:
    subject = make(body, operator=BLIND)
    assert subject.probe() is None
    return engine.examine(subject, prop, QUICK, seed=1)


@pytest.mark.parametrize(
    ("prop", "spoil", "said"),
    [
        (invariances.ROW_ORDER, "y[1:2] *= 1.01", "when its rows change places"),
        (invariances.ROW_ORDER, "y *= 1 + 0.01 * (x.shape[0] > 1)", "when row"),
        (invariances.COLUMN_ORDER, "y[:, -1] *= 1.01", "when its columns change places"),
        (invariances.IDEMPOTENT, "y += 0.25", "when it is applied to its own result"),
        (invariances.TOTAL, "y *= 1.01", "add up to"),
        (invariances.ODD, "y += 0.25", "when its input is negated"),
        (invariances.SCALE_TWO, "y = x / (x.abs().mean(1, keepdim=True) + 1e-3)", "is multiplied by 2^"),
        (invariances.ISOLATED, "y += x.isnan().any()", "is filled with nan"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_fails_without_an_oracle(prop: Property, spoil: str, said: str, make_subject: MakeSubject) -> None:
    assert examined(prop, make_subject, f"{RIGHT}return y").outcome == "passed"
    seen = examined(prop, make_subject, f"{RIGHT}{spoil}\nreturn y")
    assert seen.outcome == "failed"
    assert said in seen.findings[0].text


def test_bits_of_moved_rows_are_demanded_of_those_who_promise_them(make_subject: MakeSubject) -> None:
    case = parse("shape=4x64,turn=1")  # rows of two lines: each starts where the one before it did
    for required, outcome in (({"fp32"}, "passed"), ({"fp32", "determinism"}, "failed")):
        subject = make_subject(
            f"{RIGHT}y.view(torch.int32)[1:2] += 1\nreturn y", operator=BLIND, required=frozenset(required)
        )
        assert subject.probe() is None
        seen = engine.replay(subject, invariances.ROW_ORDER, case)
        assert seen.outcome == outcome
    assert "bits of the result change when its rows change places" in seen.findings[0].text


@pytest.mark.parametrize("turns", ["self.calls % 2", "self.calls % 5 == 0", "hash((self.calls, 3)) % 2"])
@pytest.mark.parametrize("prop", [invariances.SCALE_TWO, invariances.ODD, invariances.ISOLATED], ids=lambda p: p.name)
def test_another_order_in_some_calls_is_not_blamed_on_the_change(
    prop: Property, turns: str, make_subject: MakeSubject
) -> None:
    wavers = f"self.calls = getattr(self, 'calls', 0) + 1\n{RIGHT}return y * (1 + 1e-5 * bool({turns}))"
    seen = examined(prop, make_subject, wavers)
    assert (seen.outcome, seen.findings) == ("passed", ())
    assert seen.notes["bits change from call to call"]


@pytest.mark.parametrize(("off", "outcome"), [(2e-6, "passed"), (1e-5, "failed")])
@pytest.mark.parametrize("prop", [invariances.SCALE_TWO, invariances.ODD, invariances.ISOLATED], ids=lambda p: p.name)
def test_another_order_for_a_change_is_allowed_and_no_more(
    prop: Property, off: float, outcome: str, make_subject: MakeSubject
) -> None:
    # sqrt(257) roundoffs are 1e-6 of a result; two results may be twice that apart. The change: NaN, sign or size.
    change = "x.isnan().any() | (x[0, 0] < 0) | (x.abs().amax() > 2**40)"
    subject = make_subject(f"{RIGHT}return y * (1 + {off} * ({change}))", operator=BLIND)
    assert subject.probe() is None
    case = parse("shape=3x257,values=positive,turn=60")
    assert engine.replay(subject, prop, case).outcome == outcome


def test_an_order_is_a_permutation_that_the_seed_decides() -> None:
    for count in (0, 1, 2, 1000):
        assert torch.equal(values.order(count, 3).sort().values, torch.arange(count))
        assert torch.equal(values.order(count, 3), values.order(count, 3))
    assert not torch.equal(values.order(1000, 3), values.order(1000, 4))
