"""Call every kernel of ours on something small, for a tool that watches the process.

    python -m properties.meta.under_sanitizer

Each case is announced before its calls, as `properties.sanitized` does it. The limits of a small device are forced, so
that every kernel has a small case of its own on any card that it can run on: racecheck takes minutes for a large one.
Nothing is judged here, but a case that another kernel computes than the table says ends the program.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import torch

from kernels.cuda.op import Limits, l1_norm_limited, regime

from .. import inputs
from ..cases import Case
from ..layouts import Layout
from ..sanitized import CASE_MARK

#: Four multiprocessors with little shared memory: what they hold together is 400 KB.
SMALL = Limits(sms=4, shared_per_sm=102400, shared_per_block=101376, max_cluster=8, cooperative=True, memory=100)
#: With room for several clusters side by side; without clusters.
WIDER, ALONE = replace(SMALL, sms=32), replace(SMALL, max_cluster=1)
#: With the shared memory of a large chip, and so fast a memory that other numbers of threads are chosen.
FAST = replace(SMALL, shared_per_sm=233472, shared_per_block=232448, memory=4000)
#: That takes clusters as large as a large chip does.
LARGE = replace(FAST, max_cluster=16)
#: With a single multiprocessor, so that a few long rows are many for it.
ONE = replace(FAST, sms=1, memory=1000)
#: The kernel, the limits that choose it, and a case: odd lengths, so that edges are there.
CASES = (
    ("tile", SMALL, Case((1031, 24))),  # more than find room at once
    ("tile", SMALL, Case((1031, 3))),
    ("tile", SMALL, Case((1031, 101), "bfloat16")),
    ("tile", SMALL, Case((203, 1021))),  # beyond the cache
    ("group", SMALL, Case((9, 1023))),
    ("group", SMALL, Case((9, 300), "float64")),
    ("group", SMALL, Case((33, 101), "bfloat16")),
    ("group", FAST, Case((1031, 255), "float16")),
    ("block", SMALL, Case((65, 4097))),
    ("block", SMALL, Case((65, 4099), "float16")),
    ("block", FAST, Case((65, 2561), "bfloat16")),
    ("block", FAST, Case((9, 12501))),
    ("block", ONE, Case((16, 20001))),
    ("registers", SMALL, Case((9, 4097))),
    ("registers", FAST, Case((9, 5001))),
    ("registers", FAST, Case((9, 10001), "bfloat16")),
    ("registers", FAST, Case((9, 2501), "float64")),
    ("alone", ONE, Case((16, 60001))),  # a part of each in registers
    ("alone", ONE, Case((16, 62001), "float16")),
    ("alone", ONE, Case((16, 16001), "float64")),
    ("cluster", WIDER, Case((8, 60001))),
    ("grid", ALONE, Case((1, 150001))),
    ("grid", SMALL, Case((1, 300001))),
    ("ahead", LARGE, Case((5, 150001))),  # a team
    ("ahead", LARGE, Case((5, 200001), "bfloat16")),  # two
    ("ahead", LARGE, Case((5, 100001), "float64")),
    ("sweeps", SMALL, Case((1, 1000001))),
    ("sweeps", replace(FAST, max_cluster=1, cooperative=False), Case((1, 1000001))),
    ("columns", SMALL, Case((60, 165), layout=Layout(order=(1, 0)))),
    ("columns", SMALL, Case((3, 133, 35))),
    ("columns", SMALL, Case((3, 133, 300), "bfloat16")),  # tiles that share sectors
    ("few", SMALL, Case((5, 3, 64))),
    ("few", SMALL, Case((7, 16, 34), "float64")),
    ("few", SMALL, Case((3, 61, 35), "float16")),
    ("few", SMALL, Case((3, 101, 9))),
    ("slab", SMALL, Case((9, 3, 5))),
    ("slab", SMALL, Case((31, 101, 7), "bfloat16")),
    ("slab", SMALL, Case((5, 300, 3), "float64")),
    ("strided", SMALL, Case((3, 100, 2))),
)


def call_all() -> None:
    """Announce and call, twice each: the second call finds what the first has left."""
    for expected, limits, case in CASES:
        given = inputs.build(case)
        x = given.storage.cuda().as_strided(given.shape, given.geometry.strides, given.geometry.offset)
        y = torch.empty_like(x)
        found = regime(x, y, limits)
        if found != expected:
            sys.exit(f"{case}: the kernel is {found}, expected {expected}")
        sys.stdout.write(f"\n{CASE_MARK}{case}\n")
        sys.stdout.flush()
        for _ in range(2):
            l1_norm_limited(x, y, limits)
        torch.cuda.synchronize()


if __name__ == "__main__":
    call_all()
