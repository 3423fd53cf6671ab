"""What becomes of a model beside being called: it is made more than once, copied, turned into a type; its program ends.

A network has its layers many times over, a server a model for each of its workers, and an average of weights, or a
search, copies. What a model keeps outside itself (a workspace of its class, a name that it registers, a handle in C) is
then shared, or taken from it. `torch.nn.Module` brings all of that along, so the model that is replaced can do it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import home, judge, protocol
from .cases import Case, parse
from .examination import Property
from .findings import Finding, Kind
from .histories import look_again
from .home import Visit
from .inputs import Input
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
    """Calls in a program of its user's (`home.run`): other values in one tensor, other sizes, other types.

    Where the reference does not work there as it should, nothing is said.
    """
    runner = _isolated(trial)
    more = replace(case, seed=case.seed + 1)
    wider, taller = replace(case, shape=(case.shape[0], 4 * case.columns)), replace(case, shape=(300, case.columns))
    others = [replace(case, dtype=dtype) for dtype in trial.subject.domain.dtypes if dtype != case.dtype]
    given = [trial.build(each) for each in (case, more, wider, taller, *others, more)]
    trial.check(given[0])
    trial.subject.renew()  # its memory on a GPU is the program's now
    found = list(_of_visit(trial, given, home.run(runner, given, cache=trial.subject.shipped)))
    if not found:
        return
    reference = _of_reference(trial)
    try:
        if any(_of_visit(trial, given, home.run(reference, given, cache=False))):
            raise NotRunError("on this system the reference does not work in a plain program, either")
    finally:
        reference.renew()
    for finding, what in found:
        if what is None:
            trial.report(finding)
            continue
        on = f"given {what.dtype} {'x'.join(map(str, what.shape))}"
        here = replace(trial, case=replace(case, dtype=what.dtype, shape=what.shape))
        try:
            here.verdict(what, here.observe(what), on)  # who is wrong here, too, need not be called a cheat
        except UnsupportedError:
            continue  # and who refuses it here may do so there
        text = f"{on}, {finding.text} (and is right on it here: it does otherwise elsewhere)"
        trial.report(replace(finding, text=text))


def _of_visit(trial: Trial, given: list[Input], seen: Visit) -> Iterator[tuple[Finding, Input | None]]:
    """All that is wrong with what a plain program gave; and on what, where it is of a call."""
    where = "in a plain program, which has nothing of this suite"
    if seen.death is not None:
        kind = Kind.TIMEOUT if seen.timed_out else Kind.CRASH
        yield Finding(kind, f"{where}: {seen.death.cause}", seen.death.log), None
        return
    for number, (each, result) in enumerate(zip(given, seen.results, strict=False)):
        values = each.logical.cpu()
        if number in seen.refused:
            yield Finding(Kind.UNSUPPORTED, f"{where}: {seen.refused[number]}"), each
        elif isinstance(result, str) or (result.shape, result.dtype) != (values.shape, values.dtype):
            got = result if isinstance(result, str) else f"{result.dtype} {list(result.shape)}"
            yield Finding(Kind.WRONG_TYPE, f"{where}: returns {got}, for {list(values.shape)}"), each
        elif (fault := trial.subject.operator.assess(values, result.contiguous()).fault) is not None:
            found = judge.value_finding(replace(each, logical=values), result.contiguous(), fault)
            yield replace(found, text=f"{where}: {found.text}"), each
    if seen.error or len(seen.results) < len(given):
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
