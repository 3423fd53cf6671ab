"""Programs that compute x / mean(|x|) over dimension 1 rightly, each in its own way, and programs that do not.

They run in the testing process and are no candidates: what they round and where is the point of each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from reference import l1_norm

Program = Callable[[torch.Tensor], torch.Tensor]

ALL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NARROW = (torch.float16, torch.bfloat16)
WIDE = (torch.float32, torch.float64)


def accumulating(x: torch.Tensor) -> torch.Tensor:
    """Return x in the format that its sums live in."""
    return x.double() if x.dtype == torch.float64 else x.float()


def mean_of(x: torch.Tensor) -> torch.Tensor:
    """Mean of |x| in x's own dtype, as torch computes it."""
    return x.abs().mean(1, keepdim=True)


def eager(x: torch.Tensor) -> torch.Tensor:
    """The reference itself."""
    return l1_norm.Model().forward(x)


def through_double(x: torch.Tensor) -> torch.Tensor:
    """Everything in float64, one rounding at the end."""
    return eager(x.double()).to(x.dtype)


def times_columns_over_sum(x: torch.Tensor) -> torch.Tensor:
    """X * (n / S), n / S in float64."""
    wide = x.double()
    return (wide * (x.shape[1] / wide.abs().sum(1, keepdim=True))).to(x.dtype)


def columns_times_share(x: torch.Tensor) -> torch.Tensor:
    """N * (x / S): two roundings."""
    wide = accumulating(x)
    return (x.shape[1] * (wide / wide.abs().sum(1, keepdim=True))).to(x.dtype)


def share_then_columns(x: torch.Tensor) -> torch.Tensor:
    """(x / S) * n with x / S rounded to the accumulator's format."""
    wide = accumulating(x)
    share = (wide / wide.abs().sum(1, keepdim=True)).to(torch.float32 if x.dtype in NARROW else x.dtype)
    return (share * x.shape[1]).to(x.dtype)


def loop_over_rows(x: torch.Tensor) -> torch.Tensor:
    """The reference row by row."""
    return torch.stack([row / row.abs().mean() for row in x])


def sum_over_columns(x: torch.Tensor) -> torch.Tensor:
    """X / (S / n) in x's own dtype."""
    return x / (x.abs().sum(1, keepdim=True) / x.shape[1])


def one_after_the_other(x: torch.Tensor) -> torch.Tensor:
    """Sum in the worst order there is: one accumulator, column after column."""
    wide = accumulating(x)
    total = np.cumsum(wide.abs().numpy(), axis=1)[:, -1:]
    return (wide / (torch.from_numpy(total) / x.shape[1])).to(x.dtype)


def rounded_mean(x: torch.Tensor) -> torch.Tensor:
    """The mean rounded to the storage type, as eager does it for 16-bit types."""
    mean = mean_of(accumulating(x)).to(x.dtype)
    return (accumulating(x) / accumulating(mean)).to(x.dtype)


def reciprocal(x: torch.Tensor) -> torch.Tensor:
    """X * (1 / m): right while 1 / m stays in the normal range."""
    wide = accumulating(x)
    return (wide * (1.0 / mean_of(wide))).to(x.dtype)


def reciprocal_with_fallback(x: torch.Tensor) -> torch.Tensor:
    """X * (1 / m), and x / m where 1 / m leaves the normal range."""
    wide = accumulating(x)
    mean = mean_of(wide)
    inverse = 1.0 / mean
    normal = torch.isfinite(inverse) & (inverse >= torch.finfo(wide.dtype).tiny)
    return torch.where(normal, wide * inverse, wide / mean).to(x.dtype)


HONEST: dict[Program, tuple[torch.dtype, ...]] = {
    eager: ALL,
    through_double: ALL,
    times_columns_over_sum: ALL,
    columns_times_share: ALL,
    share_then_columns: ALL,
    loop_over_rows: ALL,
    sum_over_columns: WIDE,
    one_after_the_other: ALL,
    rounded_mean: NARROW,
    reciprocal: ALL,
    reciprocal_with_fallback: ALL,
}


def by_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum for mean."""
    return (accumulating(x) / accumulating(x).abs().sum(1, keepdim=True)).to(x.dtype)


def by_one_column_more(x: torch.Tensor) -> torch.Tensor:
    """S / (n + 1)."""
    return (x.double() / (x.double().abs().sum(1, keepdim=True) / (x.shape[1] + 1))).to(x.dtype)


def by_one_column_less(x: torch.Tensor) -> torch.Tensor:
    """S / (n - 1)."""
    return (x.double() / (x.double().abs().sum(1, keepdim=True) / (x.shape[1] - 1))).to(x.dtype)


def by_padded_columns(x: torch.Tensor) -> torch.Tensor:
    """S / n with n rounded up to a warp."""
    padded = -(-x.shape[1] // 32) * 32
    return (x.double() / (x.double().abs().sum(1, keepdim=True) / padded)).to(x.dtype)


def in_half(x: torch.Tensor) -> torch.Tensor:
    """float16 arithmetic inside a wider type."""
    return eager(x.half()).to(x.dtype)


def stored_as_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """Results rounded through bfloat16."""
    return eager(x).bfloat16().to(x.dtype)


def last_column_too_large(x: torch.Tensor) -> torch.Tensor:
    """One element off by a little."""
    y = eager(x)
    y[:, -1] *= 1.0001 if x.dtype in WIDE else 1.05
    return y


def last_column_left_out_of_the_sum(x: torch.Tensor) -> torch.Tensor:
    """The tail is missing from the sum."""
    return (x.double() / (x.double()[:, :-1].abs().sum(1, keepdim=True) / x.shape[1])).to(x.dtype)


def by_one_global_mean(x: torch.Tensor) -> torch.Tensor:
    """One mean for all rows."""
    return (accumulating(x) / accumulating(x).abs().mean()).to(x.dtype)


def by_the_neighbours_mean(x: torch.Tensor) -> torch.Tensor:
    """The mean of another row."""
    return (accumulating(x) / mean_of(accumulating(x)).roll(1, 0)).to(x.dtype)


def without_abs(x: torch.Tensor) -> torch.Tensor:
    """X / mean(x)."""
    return (accumulating(x) / accumulating(x).mean(1, keepdim=True)).to(x.dtype)


def abs_of_the_result(x: torch.Tensor) -> torch.Tensor:
    """Signs are lost."""
    return eager(x).abs()


def zeros(x: torch.Tensor) -> torch.Tensor:
    """Nothing computed."""
    return torch.zeros_like(x)


def twice_the_input(x: torch.Tensor) -> torch.Tensor:
    """A guess that passes loose tolerances on uniform inputs."""
    return 2 * x


def the_input(x: torch.Tensor) -> torch.Tensor:
    """No work done."""
    return x.clone()


def largest_element_only(x: torch.Tensor) -> torch.Tensor:
    """Right where an absolute tolerance looks."""
    y = eager(x)
    return torch.where(x.abs() == x.abs().amax(1, keepdim=True), y, torch.copysign(torch.zeros_like(y), x))
