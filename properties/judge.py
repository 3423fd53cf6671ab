"""Judge one call: from an input and what was seen of it to findings. Pure functions; nothing is run here.

The order is that of trust: how the call ended, what it did to memory, what the result is, what its values are. The
first layer with a finding is where judging stops, except that damage to the input is always told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from . import diagnosis, inputs
from .cases import Case, features
from .figures import apart
from .findings import Finding, Kind
from .inputs import Input
from .observation import Observation, Outcome
from .operators import Fault, Metric, Operator
from .process import PERTURB
from .protocol import OVERWRITTEN_BYTE, OutputMeta

#: Of how much more than its elements a result's memory is told: half as much again, beyond a padding of so many bytes.
_MORE, _PADDING = 1.5, 4096
#: Bytes that fresh and freed memory of a worker is filled with (`process.PERTURB`), so what was never written shows.
UNWRITTEN_BYTES = (PERTURB ^ 0xFF, PERTURB)
GIVEN_OUT_AGAIN = "gives out again what it gave to an earlier caller, who has written to it since"
#: The same where it is not told from memory that nobody wrote.
AGAIN_OR_UNWRITTEN = f"{GIVEN_OUT_AGAIN}, or never writes it"
_WORST_SHOWN = 5
_CHANGES_SHOWN = 4


@dataclass(frozen=True)
class Judgement:
    """What is to be said of one call.

    Attributes:
        findings: empty where nothing is wrong.
        metrics: see `operators.Assessment`.
        notes: remarks that reject nothing.
        unsupported: the candidate's own words where it refused the input; that is no finding by itself.
    """

    findings: tuple[Finding, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    notes: frozenset[str] = frozenset()
    unsupported: str = ""


def judge(given: Input, seen: Observation, operator: Operator, demands: frozenset[str] = frozenset()) -> Judgement:
    """Judge one call of ``operator``.

    Args:
        given: the input.
        seen: what was observed.
        operator: whose oracle decides.
        demands: which of ``accuracy`` and ``strides`` are findings rather than notes.
    """
    if seen.outcome in (Outcome.DIED, Outcome.TIMED_OUT):
        return Judgement((_death(seen),))
    damage = _damage(given, seen)
    if seen.outcome is Outcome.RAISED:
        assert seen.error is not None
        if damage:
            return Judgement(damage)
        return Judgement(unsupported=str(seen.error))
    assert seen.meta is not None
    wrong = _not_a_result(given, seen.meta, seen.device)
    if wrong is not None:
        return Judgement((*damage, wrong))
    if damage:
        return Judgement(damage)
    findings = [
        finding for finding in (_alias(given, seen.meta), _touched(given, seen.meta), _pending(seen.meta)) if finding
    ]
    notes = set()
    strides = _strides(given, seen.meta)
    if strides is not None:
        if "strides" in demands:
            findings.append(strides)
        else:
            notes.add("strides of the output are not those of empty_like")
    if seen.meta.inference:
        notes.add("the result is an inference tensor: outside inference mode nobody can write to it")
    if seen.meta.requires_grad and not given.requires_grad:
        notes.add("the result of an input without requires_grad has requires_grad")
    notes |= _takes_along(given, seen.meta)
    left = left_behind(seen.meta.left)
    if given.logical.numel() == 0:
        return Judgement((*findings, *left), notes=frozenset(notes))
    assert seen.output is not None
    assessment = operator.assess(given.logical, seen.output)
    if assessment.fault is not None:
        findings.append(value_finding(given, seen.output, assessment.fault, seen.device))
    if assessment.inaccurate:
        if "accuracy" in demands:
            findings.append(Finding(Kind.INACCURATE, assessment.inaccurate))
        else:
            notes.add("inaccurate: a mean is farther off than 256 lanes and a tree need (see mean error / u)")
    return Judgement((*findings, *left), assessment.metrics, assessment.notes | notes)


def refusal(words: str, case: Case) -> Finding:
    """The finding for a candidate that refuses an input it must take."""
    needed = ", ".join(sorted(features(case)))
    return Finding(Kind.UNSUPPORTED, f"refuses an input that it must take ({needed}): {words}")


def value_finding(given: Input, output: torch.Tensor, fault: Fault, device: str = "cpu") -> Finding:
    """The finding for wrong values: the operator's words, then where and what, then the worst elements.

    Args:
        given: the input.
        output: the values of the result.
        fault: what is wrong with them.
        device: where the candidate saw its input, as torch names it.
    """
    if _holds(output, fault, (OVERWRITTEN_BYTE,)):
        text = AGAIN_OR_UNWRITTEN if _recycles(device) else GIVEN_OUT_AGAIN
        return Finding(Kind.ALIASED_OUTPUT, text, tuple(_worst(fault)))
    kind = fault.kind
    unwritten = (*UNWRITTEN_BYTES, OVERWRITTEN_BYTE) if _recycles(device) else UNWRITTEN_BYTES
    if kind is not Kind.INACCURATE and _holds(output, fault, unwritten):
        kind = Kind.NOT_WRITTEN
    if kind is Kind.NOT_WRITTEN:
        phrases = [diagnosis.where_in_rows(fault.bad), diagnosis.which_rows(given, fault.bad_rows)]
        text = "; ".join(filter(None, phrases)).replace("wrong", "never written") or "no element is ever written"
    else:
        text = "; ".join(filter(None, (fault.text, diagnosis.describe(given, fault)))) or diagnosis.how_far(fault)
    return Finding(kind, text, tuple(_worst(fault)))


def _death(seen: Observation) -> Finding:
    assert seen.death is not None
    log = tuple(f"| {line}" for line in seen.death.log)
    if seen.outcome is Outcome.TIMED_OUT:
        return Finding(Kind.TIMEOUT, f"{seen.death.cause} (during {seen.death.during}); the process was killed", log)
    if "illegal memory access" in seen.death.cause or "misaligned address" in seen.death.cause:
        return Finding(Kind.OUT_OF_BOUNDS, f"touches memory that it must not: {seen.death.cause}", log)
    return Finding(Kind.CRASH, f"the process ended during {seen.death.during}: {seen.death.cause}", log)


def _damage(given: Input, seen: Observation) -> tuple[Finding, ...]:
    if seen.damage is None:
        return ()
    found = []
    if seen.damage.inside:
        first = _index(seen.damage.first or 0, given.shape)
        changed = f"{seen.damage.inside} of {given.logical.numel()} elements changed, the first at {first}"
        text = f"modifies its input: {changed}"
        found.append(Finding(Kind.INPUT_MODIFIED, text))
    if seen.damage.outside:
        text = f"writes outside its input: {seen.damage.outside} bytes around the view changed"
        found.append(Finding(Kind.OUT_OF_BOUNDS, text))
    return tuple(found)


def _not_a_result(given: Input, meta: OutputMeta, device: str) -> Finding | None:
    """What keeps the values from being looked at."""
    if meta.type != "torch.Tensor":
        return Finding(Kind.WRONG_TYPE, f"returns {meta.type}, expected exactly torch.Tensor")
    if meta.layout != "strided":
        return Finding(Kind.WRONG_TYPE, f"returns a tensor of layout {meta.layout}, expected torch.strided")
    if meta.negated and given.logical.numel():
        return Finding(
            Kind.WRONG_TYPE, "returns a lazily negated view, expected a tensor whose memory holds its values"
        )
    if meta.shape != given.shape:
        return Finding(Kind.WRONG_SHAPE, f"returns shape {list(meta.shape)}, expected {list(given.shape)}")
    if meta.dtype != given.dtype:
        return Finding(Kind.WRONG_DTYPE, f"returns {meta.dtype}, expected {given.dtype}, the input's")
    if meta.device != device:
        return Finding(Kind.WRONG_DEVICE, f"returns a tensor on {meta.device}, expected {device}")
    if meta.current:
        return Finding(Kind.STATE_LEAK, f"leaves cuda:{meta.current} as the current device; it was cuda:0 before")
    return None


def _pending(meta: OutputMeta) -> Finding | None:
    if not meta.pending:
        return None
    return Finding(Kind.PENDING_ERROR, f"leaves an error of the GPU behind for the next operation: {meta.pending}")


def _touched(given: Input, meta: OutputMeta) -> Finding | None:
    """What became of the caller's tensor, though no byte of it is another."""
    if meta.altered:
        return Finding(Kind.INPUT_MODIFIED, f"changes its input, the caller's tensor object: {'; '.join(meta.altered)}")
    if meta.written and given.logical.numel():
        return Finding(
            Kind.INPUT_MODIFIED, "works in place on its input, though every byte is back at its place afterwards"
        )
    return None


def left_behind(changes: tuple[str, ...]) -> tuple[Finding, ...]:
    """The finding for what a call has changed in the process; none where that is nothing."""
    if not changes:
        return ()
    shown, more = changes[:_CHANGES_SHOWN], len(changes) - _CHANGES_SHOWN
    text = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    return (Finding(Kind.STATE_LEAK, f"leaves the process changed for whoever comes next: {text}"),)


def _takes_along(given: Input, meta: OutputMeta) -> set[str]:
    """What lives as long as the result, and is none of it: whoever keeps the result, or writes it to a file, has it."""
    notes = set()
    if meta.attributes:
        notes.add(f"the result has attributes of its own: {', '.join(sorted(meta.attributes))}")
    held, needed = meta.storage[1] - meta.storage[0], given.logical.nbytes
    if held > max(_MORE * needed, needed + _PADDING):
        notes.add("the result is a part of a larger tensor, all of which lives as long as it")
    return notes


def _alias(given: Input, meta: OutputMeta) -> Finding | None:
    if given.logical.numel() == 0:
        return None  # whatever memory belongs to a result without elements, nobody can write to it
    (start, end), (given_start, given_end) = meta.storage, meta.input
    if start < given_end and given_start < end:
        return Finding(Kind.ALIASED_OUTPUT, "the result shares memory with the input, expected fresh memory")
    nbytes = given.logical.nbytes
    if meta.storage != (0, 0) and end - start < nbytes:
        text = f"elements of the result share memory: {end - start} bytes hold {nbytes} (strides {list(meta.strides)})"
        return Finding(Kind.ALIASED_OUTPUT, f"{text}; whoever writes to one changes others")
    return None


def _strides(given: Input, meta: OutputMeta) -> Finding | None:
    if given.logical.numel() == 0:
        return None
    # A tensor without memory: `empty_like` reads nothing but sizes and strides.
    like = torch.empty_like(torch.empty_strided(given.shape, given.geometry.strides, device="meta")).stride()
    wrong = any(size > 1 and ours != theirs for size, ours, theirs in zip(given.shape, meta.strides, like, strict=True))
    if not wrong:
        return None
    return Finding(
        Kind.WRONG_STRIDES, f"returns strides {list(meta.strides)}, expected {list(like)}, those of empty_like"
    )


def _recycles(device: str) -> bool:
    """Whether memory that nobody wrote may hold what a caller wrote to an earlier result.

    That of a GPU comes from torch's pool as it was left; that of a CPU from the C library, which fills it first.
    """
    return device != "cpu"


def _holds(output: torch.Tensor, fault: Fault, filled_with: tuple[int, ...]) -> bool:
    """Whether every wrong element that was looked at consists of one of these bytes, repeated."""
    rows = output.movedim(1, -1).reshape(-1, output.shape[1])[fault.rows.tolist()].contiguous()
    bits = inputs.bits(rows)[torch.from_numpy(fault.bad)]
    if len(bits) == 0:
        return False
    size = bits.element_size()
    patterns = [int.from_bytes(bytes([byte]) * size, "little", signed=True) for byte in filled_with]
    return bool(torch.isin(bits, torch.tensor(patterns, dtype=bits.dtype, device=bits.device)).all())


def _worst(fault: Fault) -> list[str]:
    """The worst elements, each with what was got, what was expected and how far it may be."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        distance = np.abs(fault.got - fault.expected) / np.maximum(fault.bound, np.finfo(np.float64).tiny)
    distance = np.where(np.isnan(distance), np.inf, distance)
    distance = np.where(fault.bad, distance, -1.0)
    order = np.argsort(-distance, axis=None, kind="stable")[: min(_WORST_SHOWN, int(fault.bad.sum()))]
    lines = []
    for place in order:
        row, column = np.unravel_index(place, fault.bad.shape)
        got, expected = apart(float(fault.got[row, column]), float(fault.expected[row, column]))
        bound = float(fault.bound[row, column])
        within = f" within {bound:.2g}" if np.isfinite(bound) else ""
        within = " exactly, as nothing rounds in this row" if bound == 0 else within
        lines.append(f"row {fault.rows[row]}, column {column}: got {got}, expected {expected}{within}")
    return lines


def _index(flat: int, shape: tuple[int, ...]) -> list[int]:
    return [int(place) for place in np.unravel_index(flat, shape)]
