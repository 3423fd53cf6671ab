"""What PyTorch does around a call: gradients, autocast, compilation. Right, or an error; never silently wrong."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from . import inputs, judge, strategies
from .cases import Case, parse
from .examination import Property
from .figures import apart
from .findings import Finding, Kind
from .layouts import CONTIGUOUS
from .manner import Manner
from .observation import Observation, Outcome
from .protocol import DIFFERENTIABLE, EVALUATED, GUISES, LEARNT, LENT, SETTINGS, VIEWS, Way
from .trial import Trial, UnsupportedError

#: By a case's turn: memory of its own; one number for all, as from a sum of the results; memory that lies with the
#: first dimension innermost, as behind a transposition; as at first, when the model has been called again meanwhile.
_INFLOWS = ("plain", "one number", "crossed", "another call between")


def differentiated(trial: Trial, case: Case) -> None:
    """The input asks for a gradient: result and gradient are right, or an error says that there is none.

    The case's turn says what flows in, and when (`_INFLOWS`).
    """
    backwards = trial.subject.operator.gradient
    assert backwards is not None, "the property does not apply without"
    given = replace(trial.build(case), requires_grad=True)
    forward = trial.observe(given)
    if forward.outcome is Outcome.RAISED and not forward.damage:
        return
    trial.verdict(given, forward, "where a gradient is asked for")
    inflow = inputs.case_values(replace(case, values="signed", seed=case.seed + 1), trial.subject.home)
    flow = _INFLOWS[case.turn % len(_INFLOWS)]
    lies = inflow.permute(*range(inflow.dim() - 1, -1, -1)) if flow == "crossed" else inflow
    numbers = lies.reshape(-1)[: 1 if flow == "one number" else None].clone()
    manner = Manner(inflow=numbers, crossed=flow == "crossed", between=flow == "another call between")
    seen = trial.observe(given, manner=manner)
    if seen.outcome is Outcome.RAISED and not seen.damage:
        return
    if seen.outcome is not Outcome.RETURNED or seen.meta is None or seen.damage:
        trial.verdict(given, seen)
        return
    if seen.inflow_written:
        text = "writes to the gradient that flows in: whoever gave it goes on with what stands there now"
        trial.report(Finding(Kind.INPUT_MODIFIED, text))
    if not seen.meta.flows:
        text = "the result is detached: the input asked for a gradient, none flows back, and nobody is told"
        trial.report(Finding(Kind.WRONG_GRADIENT, text))
    if seen.output is None:
        text = f"what flows back is {seen.meta.type} of {seen.meta.dtype} {list(seen.meta.shape)}, expected the input's"
        trial.report(Finding(Kind.WRONG_GRADIENT, text))
        return
    expected, bound = backwards(given.logical, numbers.expand(case.shape) if flow == "one number" else inflow)
    off = (seen.output.double() - expected).abs()
    wrong = ~(off <= bound) & bound.isfinite()  # a row of zeros has no gradient
    if bool(wrong.any()):
        places = wrong.nonzero()[:5].tolist()
        lines = tuple(
            f"at {place}: {back} flows back, expected {wanted} within {float(bound[tuple(place)]):.2g}"
            for place in places
            for back, wanted in [apart(float(seen.output[tuple(place)]), float(expected[tuple(place)]))]
        )
        text = f"the gradient is wrong in {int(wrong.sum())} of {wrong.numel()} elements"
        trial.report(Finding(Kind.WRONG_GRADIENT, text, lines))


def under_autocast(trial: Trial, case: Case) -> None:
    """Inside autocast the result has the dtype and the values that it has outside."""
    given = trial.build(case)
    trial.check(given)
    seen = trial.observe(given, manner=Manner(autocast=True))
    if seen.outcome is Outcome.RAISED and not seen.damage:
        return
    trial.verdict(given, seen, "inside torch.autocast")


def compiled(trial: Trial, case: Case) -> None:
    """`torch.compile` around the candidate: traced with tensors that hold nothing, and made functional."""
    refusal = "torch.compile cannot take it"
    trial.spare("compile", refusal)
    given = trial.build(case)
    trial.check(given)
    try:
        seen = trial.attempt(given, "compile", Manner(way=Way.COMPILED), refusal)
    except UnsupportedError:
        trial.subject.renew()  # what is left of a trace that failed may be a mode in which nothing works
        raise
    trial.verdict(given, seen, "under torch.compile")


def in_settings(trial: Trial, case: Case) -> None:
    """Whatever the caller has set around a call, and made the input of, the result is that of a plain call.

    For some of it a program that is not ours need not have been made, as long as a caller sees it.
    """
    given = trial.build(case)
    trial.check(given)
    for words, manner in _CIRCUMSTANCES.items():
        if manner.way is Way.LENT and case.layout != CONTIGUOUS:
            continue  # what is lent lies row behind row
        seen = trial.observe(given, manner=manner)
        if not trial.subject.shipped:
            refusable = words in _MAY_BE_REFUSED or (words in EVALUATED and _has_no_such_mode(seen))
            shown = _not_made_for(given, seen) if refusable else ""
            lost = _lost(trial, given, seen) if words in _MAY_LOSE else ""
            if shown or lost:
                trial.notes.add(f"does not work {words}: {shown}" if shown else f"is less exact {words}: {lost}")
                continue
        trial.verdict(given, seen, words)


def _not_made_for(given: inputs.Input, seen: Observation) -> str:
    """How a program shows that it was not made for a setting: an error, or another type than that of the input.

    Scratch, or a result, that is made without naming a type has the default one, and nobody takes another for float32.
    """
    if seen.damage:
        return ""
    if seen.outcome is Outcome.RAISED:
        return str(seen.error)
    if seen.meta is not None and seen.meta.type == "torch.Tensor" and seen.meta.dtype != given.dtype:
        return f"returns {seen.meta.dtype} for {given.dtype}"
    return ""


def _has_no_such_mode(seen: Observation) -> bool:
    """Whether torch itself will not put the model into a mode, as with an exported program: nobody is misled."""
    return seen.error is not None and seen.error.type == "NotImplementedError" and not seen.error.where


def _lost(trial: Trial, given: inputs.Input, seen: Observation) -> str:
    """What values have lost; "" where they are right, or something else is wrong."""
    if seen.outcome is not Outcome.RETURNED:
        return ""
    findings = judge.judge(given, seen, trial.subject.operator, trial.subject.required).findings
    less = {each.kind for each in findings} <= {Kind.WRONG_VALUE, Kind.INACCURATE}
    return findings[0].text if findings and less else ""


#: Circumstances of a call, by the words of a report.
_CIRCUMSTANCES = {
    **{setting: Manner(setting=setting) for setting in SETTINGS},
    **{f"given {guise}": Manner(stand_in=guise) for guise in GUISES},
    **{
        f"given {asking}, inside torch.no_grad": Manner(stand_in=asking, setting="inside torch.no_grad")
        for asking in (DIFFERENTIABLE, LEARNT)
    },
    "from another thread": Manner(way=Way.ELSEWHERE),
    **{f"given {what}": Manner(way=Way.LENT, stand_in=what) for what in LENT},
}
#: Those that a program need not have been made for: of the guises, all but views.
_MAY_BE_REFUSED = (
    "with float64 as the default type",
    "with bfloat16 as the default type",
    "where algorithms must be deterministic",
    *(f"given {guise}" for guise in GUISES if guise not in VIEWS),
    *(f"given {asking}, inside torch.no_grad" for asking in (DIFFERENTIABLE, LEARNT)),
)

#: Where a program may take its caller at his word, as long as it is told.
_MAY_LOSE = ("where float32 products may be imprecise",)

#: Recipes that make no row of zeros.
_NONZERO = ("ones", "signed", "positive", "constant")

AUTOGRAD = Property(
    "autograd",
    "An input that asks for a gradient gets the right one, or an error: never a detached result.",
    lambda domain, _: strategies.cases(
        domain, _NONZERO, elements=1 << 14, layouts=True, empty=False, turns=st.integers(0, len(_INFLOWS) - 1)
    ),
    differentiated,
    pinned=(
        parse("shape=3x257,seed=21"),
        *(parse(f"shape=3x257,seed=21,turn={turn}") for turn in range(1, len(_INFLOWS))),
        parse("shape=2x5x3,seed=21"),
        parse("shape=1x1,layout=lap2,values=signed,seed=21,turn=2"),
    ),
    promised="autograd",
    applies=lambda operator: operator.gradient is not None,
)

AUTOCAST = Property(
    "autocast",
    "Inside torch.autocast the result is what it is outside, or there is an error.",
    lambda domain, _: strategies.cases(domain, ("integers", "signed"), elements=1 << 14, layouts=True),
    under_autocast,
    pinned=(parse("shape=3x257,seed=22"), parse("shape=3x257,dtype=float16,seed=22")),
    promised="autocast",
)

# A few cases and no drawn ones: each traces the program anew, after seconds for dynamo's import. Shapes of one rank are
# all the same to it; what differs is a program's own choice by type, rank, strides and emptiness.
COMPILE = Property(
    "compile",
    "Under torch.compile the result is what it is without.",
    None,
    compiled,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=3x257,seed=25",
            "shape=2x5x33,dtype=float16,seed=25",
            "shape=5x6,layout=offset1+order1.0,seed=25",
            "shape=0x5",
        )
    ),
    promised="compile",
)

# No drawn cases: a program that looks at its caller's settings does so by type, layout or size at most, and each case
# is a handful of calls. Some are large enough to be shared out among threads.
SETTING = Property(
    "settings",
    "Inside no_grad and inference_mode, in evaluation, with few threads or many, from another thread, and for a view, a"
    " parameter, an inference tensor, a part of a larger one or another's memory, the result is the same.",
    None,
    in_settings,
    pinned=tuple(
        parse(line)
        for line in (
            "shape=5x301,seed=29",
            "shape=4x64,values=exact-mean,seed=29",
            "shape=3x257,dtype=float16,seed=29",
            "shape=3x257,dtype=bfloat16,seed=29",
            "shape=3x257,dtype=float64,seed=29",
            "shape=7x33,values=tiny,seed=29",
            "shape=33x40,layout=offset1+order1.0,seed=29",
            "shape=2x300x65,seed=29",
            "shape=300x1025,values=row-scales,seed=29",
            "shape=1x131073,seed=29",
        )
    ),
)
