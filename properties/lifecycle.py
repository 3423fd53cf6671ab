"""What becomes of a model beside being called: it is made more than once, copied, turned into a type; its program ends.

A network has its layers many times over, a server a model for each of its workers, and an average of weights, or a
search, copies. What a model keeps outside itself (a workspace of its class, a name that it registers, a handle in C) is
then shared, or taken from it. `torch.nn.Module` brings all of that along, so the model that is replaced can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from . import home, judge, protocol
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .histories import look_again
from .home import Call, Visit
from .inputs import Input
from .layouts import Layout
from .manner import Manner
from .observation import Outcome
from .process import WorkerDiedError
from .protocol import ErrorInfo
from .runner import Runner
from .trial import NotRunError, Trial, UnsupportedError

#: What a program need not have been made for, as long as whoever asks for it sees an error: one that holds its compiled
#: module, as many do, cannot be copied.
_MAY_BE_REFUSED = protocol.INSTANCES[1:]
#: The exit code of a program that ends: of one that is 0 nobody sees that it was changed to that.
_STATUS, _ENDED = 42, "exit status 42"
#: Seconds within which a program ends, on a busy machine, too: torch's takes less than one, compilers' helpers some.
_END_SECONDS = 15.0
#: Calls in a row in a plain program.
_IN_A_ROW = 200
#: Where the error may come as late as the call, or in the shape of a result of another type: all of a program that was
#: made for one type.
_OF_A_TYPE = protocol.INSTANCES[3]


def instances(trial: Trial, case: Case) -> None:
    """Further instances are called on wider inputs, and the first again: beside each of them and when they are gone."""
    given, wider = trial.build(case), trial.build(replace(case, shape=(case.shape[0], case.columns + 1), seed=1))
    trial.check(given)
    runner = trial.subject.runner
    results: list[str] = []
    trial.keep(given, "early")
    for instance in protocol.INSTANCES:
        error = _made(trial, instance)
        if error is not None and instance in _MAY_BE_REFUSED:
            trial.notes.add(f"cannot be had as {instance}: {error}")
            continue
        if error is not None:
            text = f"refuses to be made twice in one process, as every layer of a network is: {error}"
            trial.report(Finding(Kind.UNSUPPORTED, text))
        _called(trial, wider, instance)
        late = trial.observe(wider, keep=instance, manner=Manner(instance=instance, whole=True))
        # One that was turned into a type may return another, which `_called` has told.
        results += [instance] if late.meta is not None and late.meta.dtype == wider.dtype else []
        trial.verdict(given, trial.observe(given), f"the first instance, beside {instance}")
    try:
        runner.let_go()
    except WorkerDiedError as dead:
        trial.report(Finding(Kind.CRASH, f"the process ends when an instance goes: {dead.death.cause}", dead.death.log))
    trial.verdict(given, trial.observe(given), "the first instance, when the others are gone")
    look_again(trial, "early", given, wider)
    for instance in results:
        look_again(trial, instance, wider, None, f"the result of {instance} is no longer right when that is gone")
    runner.forget()


def _made(trial: Trial, instance: str) -> ErrorInfo | None:
    """Make another instance; the error that comes of it."""
    try:
        return trial.subject.runner.make(instance, trial.case.dtype)
    except WorkerDiedError as dead:
        kind = Kind.TIMEOUT if dead.timed_out else Kind.CRASH
        trial.report(Finding(kind, f"when {instance} is made: {dead.death.cause}", dead.death.log))
        raise AssertionError("`report` ends the case") from dead


def _called(trial: Trial, given: Input, instance: str) -> None:
    """Call another instance, and judge what it gives."""
    seen = trial.observe(given, manner=Manner(instance=instance))
    if instance == _OF_A_TYPE and not seen.damage:
        if seen.outcome is Outcome.RAISED:
            trial.notes.add(f"refuses to be {instance}: {seen.error}")
            return
        if seen.meta is not None and seen.meta.type == "torch.Tensor" and seen.meta.dtype != given.dtype:
            trial.notes.add(f"returns {seen.meta.dtype} for {given.dtype} from {instance}")
            return
    trial.verdict(given, seen, instance)


def ending(trial: Trial, case: Case) -> None:
    """Plain calls in a fresh process, which is then to end as a program does that has come to its last line.

    Where the reference does not end there as it should, nothing is said.
    """
    runner = _isolated(trial)
    trial.subject.renew()
    given = trial.build(case)
    trial.check(given)
    death = runner.end(_STATUS, _END_SECONDS)
    if death.cause == _ENDED:
        return
    reference = _of_reference(trial)
    try:
        seen = reference.observe(given)
        if seen.outcome is not Outcome.RETURNED or reference.end(_STATUS, _END_SECONDS).cause != _ENDED:
            raise NotRunError("on this system the reference does not end as it should, either")
    finally:
        reference.renew()
    text = f"a program that has called it does not end by itself, with its own exit code ({_STATUS}): {death.cause}"
    trial.report(Finding(Kind.STATE_LEAK, text, death.log))


def at_home(trial: Trial, case: Case) -> None:
    """Calls in a program of its user's (`home.run`): other values in one tensor, other sizes, layouts and types.

    Many in a row, in evaluation, and with a gradient asked for, too. Where the reference does not work there as it
    should, nothing is said.
    """
    runner = _isolated(trial)
    calls = [call(trial.build(each)) for each, call in _at_home(trial, case)]
    trial.check(calls[0].given)
    trial.subject.renew()  # its memory on a GPU is the program's now
    found = list(_of_visit(trial, calls, home.run(runner, calls, cache=trial.subject.shipped)))
    if not found:
        return
    reference = _of_reference(trial)
    try:
        if any(_of_visit(trial, calls, home.run(reference, calls, cache=False))):
            raise NotRunError("on this system the reference does not work in a plain program, either")
    finally:
        reference.renew()
    for finding, call in found:
        if call is None:
            trial.report(finding)
            continue
        what = call.given
        on = f"given {what.dtype} {'x'.join(map(str, what.shape))}{_in_words(call)}"
        here = replace(trial, case=replace(case, dtype=what.dtype, shape=what.shape))
        try:
            # Who is wrong here, too, need not be called a cheat.
            manner = Manner(setting=protocol.EVALUATED[0] if call.evaluated else "")
            here.verdict(what, here.observe(replace(what, requires_grad=call.asks), manner=manner), on)
        except UnsupportedError:
            continue  # and who refuses it here may do so there
        text = f"{on}, {finding.text} (and is right on it here: it does otherwise elsewhere)"
        trial.report(replace(finding, text=text))


def _at_home(trial: Trial, case: Case) -> Iterator[tuple[Case, Callable[[Input], Call]]]:
    """Cases, and what is made of the input of each: a call."""
    domain = trial.subject.domain
    more = replace(case, seed=case.seed + 1)
    yield from ((each, Call) for each in (case, more))
    for shape in ((case.shape[0], 4 * case.columns), (300, case.columns), (1031, 509)):
        yield replace(case, shape=shape), Call
    for dtype in domain.dtypes:
        if dtype != case.dtype:
            yield replace(case, dtype=dtype), Call
    if "nd" in domain.supported:
        yield replace(case, shape=(2, case.columns, 5, 4)), Call
    if "strided" in domain.supported:
        yield replace(case, shape=(48, 64), layout=Layout(order=(1, 0))), Call
        yield replace(case, shape=(48, 64), layout=Layout(offset=3, pitch=5)), Call
    yield more, partial(Call, evaluated=True)
    yield case, partial(Call, asks=True)
    yield more, partial(Call, times=_IN_A_ROW)


def _in_words(call: Call) -> str:
    """How a call was made, for a report; "" for once and plainly."""
    words = ["in evaluation"] if call.evaluated else []
    words += ["asking for a gradient"] if call.asks else []
    words += [f"{call.times} times"] if call.times > 1 else []
    return f" ({', '.join(words)})" if words else ""


def _of_visit(trial: Trial, calls: list[Call], seen: Visit) -> Iterator[tuple[Finding, Call | None]]:
    """All that is wrong with what a plain program gave; and on what, where it is of a call."""
    where = "in a plain program, which has nothing of this suite"
    if seen.death is not None:
        kind = Kind.TIMEOUT if seen.timed_out else Kind.CRASH
        yield Finding(kind, f"{where}: {seen.death.cause}", seen.death.log), None
        return
    for number, (call, result) in enumerate(zip(calls, seen.results, strict=False)):
        each = call.given
        values = each.logical.cpu()
        if number in seen.refused:
            if not (call.asks or call.evaluated):  # which is looked at elsewhere
                yield Finding(Kind.UNSUPPORTED, f"{where}: {seen.refused[number]}"), call
        elif isinstance(result, str) or (result.shape, result.dtype) != (values.shape, values.dtype):
            got = result if isinstance(result, str) else f"{result.dtype} {list(result.shape)}"
            yield Finding(Kind.WRONG_TYPE, f"{where}: returns {got}, for {list(values.shape)}"), call
        elif (fault := trial.subject.operator.assess(values, result.contiguous()).fault) is not None:
            found = judge.value_finding(replace(each, logical=values), result.contiguous(), fault)
            yield replace(found, text=f"{where}: {found.text}"), call
    if seen.error or len(seen.results) < len(calls):
        kind = Kind.UNSUPPORTED if seen.loaded else Kind.DOES_NOT_BUILD
        yield Finding(kind, f"{where}: {seen.error or 'not all calls were made'}"), None


def _isolated(trial: Trial) -> Runner:
    """The candidate's runner.

    Raises:
        NotRunError: it runs in the judging process, which is nobody's program.
    """
    if not trial.subject.runner.isolated:
        raise NotRunError("it needs a process of its own")
    return trial.subject.runner


def _of_reference(trial: Trial) -> Runner:
    """A runner of the reference, like the candidate's."""
    operator = trial.subject.operator
    return replace(
        trial.subject.runner,
        candidate=operator.reference,
        init=operator.init,
        model="Model",
        taken="",
        borrows=True,
        deaths=0,
        _worker=None,
    )


# No drawn cases: what an instance keeps is made at its first call, of whatever size. Of ones in half precision a long
# row's sum is above the largest number.
INSTANCES = Property(
    "instances",
    "A second instance, a copy, and one that was saved, loaded or turned into a type are right, and disturb no other.",
    None,
    instances,
    pinned=(
        parse("shape=5x301,seed=31"),
        parse("shape=1x70001,dtype=float16,values=ones,seed=31"),
        parse("shape=3x257,dtype=float64,seed=31"),
    ),
)

# On a GPU a context ends with the process, which is the driver's doing.
END = Property(
    "end",
    "A program that has called it ends by itself, with its own exit code.",
    None,
    ending,
    pinned=(parse("shape=300x129,seed=32"),),
    targets=("cpu",),
)

# No drawn cases: each is a program that imports torch, and what tells a judge from a user is no question of size.
HOME = Property(
    "home",
    "In a plain program of its user's, which knows of no judge, results are right, too.",
    None,
    at_home,
    pinned=(parse("shape=5x301,seed=36"),),
)
