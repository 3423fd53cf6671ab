"""How a call is made, beside on what: plainly, or as a framework, another thread or a busy GPU makes it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .inputs import Input
from .protocol import Way


@dataclass(frozen=True)
class Manner:
    """One manner of calling.

    Attributes:
        before: on a GPU, what the input's memory holds when the call is made: work that is queued ahead of it on the
            same stream writes the input there some time later.
        side: on a GPU, whether another stream than the usual one is current.
        autocast: whether the call is made inside `torch.autocast` (to bfloat16).
        inflow: what flows into the result when gradients are taken, 1-D, an element for each of the input's or one for
            all of them: what is then seen in the result's place is what flows back to the input. The input must ask for
            a gradient.
        crossed: whether what flows in lies in memory with its first dimension innermost, as behind a transposition.
        between: whether, before gradients are taken, the model is called on other values, as where it stands in a
            network twice.
        way: what stands between the caller and the model.
        beside: another input, on which a second thread calls the model at the same time, several times over; its result
            is kept under the name `protocol.BESIDE`.
        busy: on a GPU, whether it has other work on another stream meanwhile.
        stand_in: name of `worker_ways.STAND_INS`, or of `protocol.LENT` where the way is that: what is handed over in
            the tensor's place; "" for the tensor itself.
        setting: one of `protocol.SETTINGS`: what the caller has set around the call; "" for nothing.
        instance: one of `protocol.INSTANCES` that was made (`Runner.make`), which is called; "" for the first one.
        aside: whether the input lies at another address than all others do, and stays there, for `Runner.aside`.
        whole: whether a result that is kept is kept as the very object that was returned, and not a part of it.
        sealed: on a CPU, whether the input's memory can only be read during the call: a write ends the process.
    """

    before: Input | None = None
    side: bool = False
    autocast: bool = False
    inflow: torch.Tensor | None = None
    crossed: bool = False
    between: bool = False
    way: Way = Way.PLAIN
    beside: Input | None = None
    busy: bool = False
    stand_in: str = ""
    setting: str = ""
    instance: str = ""
    aside: bool = False
    whole: bool = False
    sealed: bool = False


PLAIN = Manner()


def kinds(given: Input, manner: Manner) -> frozenset[str]:
    """What a call is of that a program may have to compile for before its first answer."""
    rank, rows = len(given.shape), torch.empty(given.shape, device="meta").stride()
    return frozenset(
        (
            given.dtype,
            "two dimensions" if rank == 2 else "another rank",
            "contiguous" if given.geometry.strides == rows else "strided",
            f"negated: {given.negated}",
            f"gradient asked for: {given.requires_grad}",
            f"autocast: {manner.autocast}",
            f"called {manner.way}",
            f"setting: {manner.setting}",
            f"in its place: {manner.stand_in}",
            f"instance: {manner.instance}",
        )
    )
