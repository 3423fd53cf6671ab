"""What came before a call must not matter, and what comes after must not change its result."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace

import torch
from hypothesis import strategies as st

from . import comparisons, graphs, judge, strategies
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .inputs import Input
from .manner import Manner
from .observation import Observation, Outcome
from .protocol import CALLS_IN_A_ROW, Way
from .strategies import Domain
from .trial import StopError, Trial, UnsupportedError

#: A candidate may hand out a few buffers in turn: an earlier result must outlive more calls than there are buffers.
#: A case's turn asks for more calls than these.
_LATER_CALLS = 9

#: Which of four seeds have zeros of both signs come behind each other.
_OF_ZEROS = 3

#: How often two shapes alternate.
_IN_TURN = 10

#: Calls behind the first; a case's turn asks for more.
_REPEATS = 3


def history(trial: Trial, case: Case) -> None:
    """Two inputs at one address; the first result is looked at only after several calls on the second.

    Behind these come inputs that are the second but for an element or two, and, where there were many, calls on other
    shapes (`_regrouped`).
    """
    first = trial.build(case)
    second = trial.build(Case(case.shape, case.dtype, case.layout, case.values, case.seed + 1))
    runner = trial.subject.runner
    trial.keep(first, "early")
    for _ in range(max(_LATER_CALLS, case.turn) - 1):
        seen = trial.observe(second)
        if seen.outcome is not Outcome.RETURNED:
            trial.verdict(second, seen)
    late = trial.observe(second)
    _verdict(trial, second, late, first)
    before = second
    for nearly in _nearly(trial, case, second):
        _verdict(trial, nearly, trial.observe(nearly), second, before)
        before = nearly
    if case.turn:
        for shape in _regrouped(case.shape):
            given = trial.build(Case(shape, case.dtype, values=case.values, seed=case.seed + 2))
            _verdict(trial, given, trial.observe(given), second, when=f"then, on {'x'.join(map(str, shape))}")
    look_again(trial, "early", first, second)
    runner.forget()
    _verdict(trial, first, trial.observe(first), second, before)


def _regrouped(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """After many calls on one shape: the last, smaller batch; the same elements in rows of another length; two in turn.

    A program may keep what it made for a shape that comes again and again, and take it for one that is much the same.
    """
    rows, columns, *inner = shape
    yield (max(rows // 2, 1), columns, *inner)
    yield (columns, rows, *inner)
    for _ in range(_IN_TURN):
        yield shape
        yield (rows, columns + 1, *inner)


def earlier_input(trial: Trial, case: Case) -> None:
    """An input that its caller keeps, at an address of its own, is looked at again when others have been called on."""
    first, second = trial.build(case), trial.build(replace(case, seed=case.seed + 1))
    trial.verdict(first, trial.observe(first, manner=Manner(aside=True)))
    for _ in range(_REPEATS):
        trial.check(second)
        damage = trial.subject.runner.aside(first)
        if damage is not None:
            text = "writes to the input of an earlier call, which its caller still has"
            trial.report(Finding(Kind.INPUT_MODIFIED, f"{text}: {damage.inside} elements changed"))


def many_calls(trial: Trial, case: Case) -> None:
    """Tens of thousands of calls on one input, of whose results one that is unlike the first is judged; then another.

    The result of the call before them all is looked at again behind them.
    """
    given, again = trial.build(case), trial.build(replace(case, seed=case.seed + 1))
    trial.keep(given, "early")
    trial.check(again)
    seen = trial.observe(again, manner=Manner(way=Way.OFTEN))
    trial.verdict(again, seen, f"one of {CALLS_IN_A_ROW} calls in a row")
    assert seen.meta is not None, "of what raised nothing, and was right"
    calls = seen.meta.calls
    if calls < CALLS_IN_A_ROW:
        trial.notes.add(f"slow: fewer than {CALLS_IN_A_ROW} calls in a row were looked at, for want of time")
    trial.verdict(given, trial.observe(given), f"after {calls} calls in a row")
    look_again(trial, "early", given, again)
    trial.subject.runner.forget()


def _nearly(trial: Trial, case: Case, given: Input) -> Iterator[Input]:
    """The input with two elements of a row in the middle exchanged; with one of them four times, or a little, larger.

    Or with the very first, or last, four times larger. Who tells inputs apart by their sums, their corners, a sample,
    within a tolerance, or by all but what is left over takes them for the input. The case's seed chooses which comes
    first. At last, of one in four, an element is 0, and then -0, which is no other
    number.
    """
    if case.layout.shared or case.rows * case.columns == 0:
        return
    rows = given.logical.movedim(1, -1)
    row = tuple(size // 2 for size in rows.shape[:-1])
    left, right = (*row, case.columns // 3), (*row, 2 * case.columns // 3)
    ends = {"first": (0,) * rows.dim(), "last": tuple(size - 1 for size in rows.shape)}
    changes = ("larger", "a little larger", "exchanged", *ends)
    for turn in range(len(changes)):
        change = changes[(case.seed + turn) % len(changes)]
        logical = given.logical.clone()
        view = logical.movedim(1, -1)
        if change == "exchanged":
            view[left], view[right] = rows[right], rows[left]
        else:
            place = ends.get(change, left)
            # Of 16 bits the next value is more than a tolerance away, and the little is none.
            view[place] = (1 + 2**-15 if change == "a little larger" else 4) * rows[place]
        yield trial.place(case, logical)
    for zero in (0.0, -0.0) if case.seed % 4 == _OF_ZEROS else ():
        logical = given.logical.clone()
        logical.movedim(1, -1)[left] = zero
        yield trial.place(case, logical)


def sequence(trial: Trial, case: Case) -> None:
    """Calls and looks in the order that the turn spells (`steps`): shapes, types and values alternate, results wait.

    On a GPU, and of who promises it: streams and graphs, too.
    """
    runner = trial.subject.runner
    streams, captures = (runner.on_gpu and name in trial.subject.required for name in ("stream", "graph"))
    now, kept, last = case, list[tuple[str, Input]](), None
    try:
        for place, step in enumerate(steps(case.turn)):
            if step is Step.LOOK:
                if kept:
                    look_again(trial, *kept.pop(0), last)
                continue
            now = _changed(now, step, case, trial.subject.domain)
            given = trial.build(now)
            if step is Step.IN_GRAPH and captures:
                now = replace(now, seed=now.seed + 1)
                given, before = trial.build(now), given
                _in_graph(trial, before, given)
                last = given
                continue
            name = f"kept at step {place}" if step is Step.KEEP else ""
            seen = trial.observe(given, name, manner=Manner(side=step is Step.OTHER_STREAM and streams))
            if step is Step.KEEP and seen.outcome is Outcome.RETURNED:
                kept.append((name, given))
                continue
            _verdict(trial, given, seen, last)
            last = given
        for name, given in kept:
            look_again(trial, name, given, last)
    finally:
        runner.forget()


class Step(enum.Enum):
    """What may come next: the digits of a turn, the last first."""

    AGAIN = 0
    NEW_VALUES = 1
    KEEP = 2
    LOOK = 3
    WIDER = 4
    TALLER = 5
    OTHER_TYPE = 6
    AS_AT_FIRST = 7
    OTHER_STREAM = 8
    IN_GRAPH = 9


def steps(turn: int) -> list[Step]:
    """The steps that a turn spells."""
    found = []
    while turn:
        turn, digit = divmod(turn, len(Step))
        found.append(Step(digit))
    return found


def _in_graph(trial: Trial, first: Input, then: Input) -> None:
    """Capture a call on one input, and replay it on another."""
    trial.check(first)
    try:
        graphs.capture(trial, first)
        graphs.replay(trial, first, then)
    except (StopError, UnsupportedError):
        trial.subject.runner.renew()  # as for `graphs.replayed`
        raise


def _changed(now: Case, step: Step, first: Case, domain: Domain) -> Case:
    """The case after a step."""
    if step is Step.NEW_VALUES:
        return replace(now, seed=now.seed + 1)
    if step is Step.WIDER:
        return replace(now, shape=(now.shape[0], now.shape[1] + 1, *now.shape[2:]))
    if step is Step.TALLER:
        return replace(now, shape=(now.shape[0] + 1, *now.shape[1:]))
    if step is Step.OTHER_TYPE:
        types = domain.dtypes
        return replace(now, dtype=types[(types.index(now.dtype) + 1) % len(types)])
    return first if step is Step.AS_AT_FIRST else now


#: What is said of a result that was right once.
_AFTER_LATER_CALLS = "an earlier result is no longer right after a later call"


def look_again(trial: Trial, name: str, given: Input, later: Input | None, text: str = _AFTER_LATER_CALLS) -> None:
    """Judge a result that was kept, now that other calls have been made; ``later`` is what one of them was made on.

    ``text`` is what is said where nothing shows whose values it holds now.
    """
    kept = trial.subject.runner.collect(name, given)
    said = judge.judge(given, kept, trial.subject.operator, trial.subject.required)
    if not said.findings:
        return
    trial.check(given)
    written_over = said.findings[0].kind is Kind.ALIASED_OUTPUT  # as every later result is, once it was copied out
    if written_over or (later is not None and _is_result_of(trial, later, kept.output)):
        text = "an earlier result holds that of a later call: both lie in the same memory"
    trial.report(Finding(Kind.ALIASED_OUTPUT, text, said.findings[0].details))


def _is_result_of(trial: Trial, given: Input, output: torch.Tensor | None) -> bool:
    if output is None or output.shape != given.logical.shape or output.dtype != given.logical.dtype:
        return False
    if output.numel() == 0:
        return False  # it is the result of whatever was called
    return trial.subject.operator.assess(given.logical, output).fault is None


def _verdict(trial: Trial, given: Input, seen: Observation, *earlier: Input | None, when: str = "") -> None:
    """Judge as `Trial.verdict` does, and say so if what is wrong here is right for an input of an earlier call."""
    try:
        trial.verdict(given, seen, when)
    except StopError:
        if any(_is_result_of(trial, each, seen.output) for each in earlier if each is not None):
            text = "gives the result of an earlier call, though other data lie at the same address"
            trial.findings[:] = [Finding(Kind.STALE_RESULT, text, trial.findings[-1].details)]
        raise


def repeated(trial: Trial, case: Case) -> None:
    """The same input again and again; the first result is judged, the others are compared with it bit for bit.

    On a GPU all calls but the first are made while another stream keeps it busy: blocks then start in another order, on
    other multiprocessors and not all at once.
    """
    given = trial.build(case)
    first = trial.check(given)
    manner = Manner(busy=trial.subject.runner.on_gpu)
    for _ in range(max(_REPEATS, case.turn)):
        seen = trial.observe(given, manner=manner)
        if seen.outcome is not Outcome.RETURNED or seen.damage or seen.output is None:
            trial.verdict(given, seen)
        if seen.output is not None and not bool(comparisons.same_bits(first, seen.output).all()):
            trial.verdict(given, seen)
            trial.report(Finding(Kind.NONDETERMINISTIC, "the same call on the same input gives other bits"))


HISTORY = Property(
    "history",
    "New data at an old address give a new result, and earlier results stay right after later calls.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed", "row-scales"), elements=1 << 14, layouts=True),
    history,
    pinned=(
        parse("shape=4x257,seed=11,turn=150"),
        parse("shape=5x301,seed=13,turn=40"),
        parse("shape=64x1024,seed=11,turn=9"),
        # Large enough for a buffer that is not made anew for everyone.
        parse("shape=1031x1031,seed=11"),
        parse("shape=65x65537,seed=11"),
    ),
)


EARLIER_INPUT = Property(
    "earlier-input",
    "An input is left alone by later calls, too.",
    None,
    earlier_input,
    # Of the same size and type as those behind it, which is when it may be taken for what a call needs.
    pinned=(parse("shape=5x301,seed=33"), parse("shape=64x1024,seed=33"), parse("shape=4x257,dtype=float16,seed=33")),
    targets=("cpu",),
)

MANY_CALLS = Property(
    "many-calls",
    "However many calls there were, the next is right.",
    None,
    many_calls,
    # Integers, whose sums are exact in any order: of a program that adds in another one each time, all are alike, too.
    pinned=(parse("shape=2x17,values=integers,seed=34"),),
    # Long enough that several blocks, or clusters, share a row, and so have something to count.
    pinned_on_gpu=(parse("shape=1x65537,values=integers,seed=34"),),
)

#: Turns that spell up to ten steps, the usual ones twice as often as the others.
_SPELLED = st.lists(st.sampled_from((*Step, *list(Step)[1:7])), max_size=10).map(
    lambda found: sum(step.value * len(Step) ** place for place, step in enumerate(found))
)

SEQUENCE = Property(
    "sequence",
    "Whatever was called before, in whatever order, every result is right, and stays right.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed"), elements=1 << 12, turns=_SPELLED, empty=False),
    sequence,
    # Spelled from the right: kept results between new values, sizes and types; looked at in between and at the end.
    pinned=(
        # A result that is kept, then at once another size or type, then a look.
        parse("shape=4x257,seed=23,turn=362342352"),
        parse("shape=8x16,seed=23,turn=362342352"),
        # Another size in a narrower type, then the same size in the wider ones.
        parse("shape=4x257,seed=23,turn=666565"),
        parse("shape=4x257,seed=23,turn=7732121262"),
        parse("shape=3x33,seed=23,turn=3214121512"),
        # Between a kept result and the look at it: graphs, other streams, other sizes, other types.
        parse("shape=4x257,seed=23,turn=8396482912"),
        parse("shape=2x4100,seed=23,turn=3195892862"),
        parse("shape=1031x1025,seed=23,turn=362342352"),
    ),
)

REPEATED = Property(
    "determinism",
    "The same call gives the same bits.",
    lambda domain, _: strategies.cases(domain, ("signed", "heavy"), layouts=True),
    repeated,
    pinned=(
        parse("shape=2000x1000,values=row-scales,seed=12"),
        parse("shape=1x262144,values=heavy,seed=12"),
        # Shared scratch reused too early by a block's next row: neighbours differ by powers of ten, and many try.
        parse("shape=4000x1000,values=row-scales,seed=12,turn=20"),
    ),
    promised="determinism",
)
