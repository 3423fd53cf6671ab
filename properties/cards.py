"""A GPU for each of several pytest processes: whose card comes first in ``CUDA_VISIBLE_DEVICES``.

Everything here runs on the first visible card, the first of several GPUs alike. Under pytest-xdist each process
therefore gets the list of cards turned so that one of its own comes first: the others stay visible behind it, and what
needs a second GPU finds one. Processes beyond the number of cards begin with the first card again, and share.

The list is made once, by the process that starts the others, and set in each of them before anything of CUDA is
counted there; what they start inherits it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What the driver, and torch, go by when they count GPUs.
VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(named: str | None, count: int) -> list[str]:
    """The cards that a process can see, each as the variable names it.

    Args:
        named: the variable's value, None where it is not set.
        count: how many there are, as torch counts them.
    """
    if named is None:
        return [str(number) for number in range(count)]
    # The driver takes names up to the first that is none: behind it nothing is visible.
    return [name.strip() for name in named.split(",")][:count]


def turned(cards: Sequence[str], worker: str) -> str:
    """The variable's value for one process: all cards, its own first.

    Args:
        cards: see `visible`; at least one.
        worker: the process's name, ``gw0`` for the first.
    """
    number = re.search(r"\d+", worker)
    first = int(number[0]) % len(cards) if number else 0
    return ",".join([*cards[first:], *cards[:first]])
