"""The four floating-point formats a tensor may be stored in, as numbers, without torch.

Everything is a power of two or follows from one, so each value here is exact. Formats are binary with gradual underflow
and round to nearest, ties to even (IEEE 754-2019, section 3.3; bfloat16 is the upper half of binary32).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    Attributes:
        name: the torch dtype's name, "float32".
        precision: bits of the significand, the hidden one included.
        overflow_exponent: 2^overflow_exponent is the smallest power of two that is too large for the format.
        quantum_exponent: 2^quantum_exponent is the smallest subnormal number, the quantum.
    """

    name: str
    precision: int
    overflow_exponent: int
    quantum_exponent: int

    @property
    def roundoff(self) -> float:
        """The unit roundoff u: rounding a number of the normal range changes it by at most this factor."""
        return math.ldexp(1.0, -self.precision)

    @property
    def quantum(self) -> float:
        """The smallest positive number; every number of the format is an integer multiple of it."""
        return math.ldexp(1.0, self.quantum_exponent)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return math.ldexp(1.0 - self.roundoff, self.overflow_exponent)

    @property
    def overflow_significand(self) -> float:
        """Where rounding to nearest gives infinity, divided by 2^overflow_exponent: largest plus half its last place.

        For float64 this is 1 - 2^-54, which a double cannot hold; it is given as 1, half a roundoff too large.
        """
        return 1.0 - math.ldexp(1.0, -self.precision - 1)


FORMATS = {
    format_.name: format_
    for format_ in (
        Format("float16", precision=11, overflow_exponent=16, quantum_exponent=-24),
        Format("bfloat16", precision=8, overflow_exponent=128, quantum_exponent=-133),
        Format("float32", precision=24, overflow_exponent=128, quantum_exponent=-149),
        Format("float64", precision=53, overflow_exponent=1024, quantum_exponent=-1074),
    )
}


def format_of(dtype: str) -> Format:
    """Return the format of a dtype.

    Args:
        dtype: name of the dtype with or without torch's prefix: "float32" or "torch.float32".

    Raises:
        ValueError: the dtype is none of the four.
    """
    try:
        return FORMATS[dtype.removeprefix("torch.")]
    except KeyError:
        raise ValueError(f"no floating-point format named {dtype!r}: pass one of {', '.join(FORMATS)}") from None


def accumulator(dtype: str) -> Format:
    """Return the format that sums and means live in: float64 for float64, float32 for the other three.

    Raises:
        ValueError: the dtype is none of the four.
    """
    return FORMATS["float64" if format_of(dtype).name == "float64" else "float32"]
