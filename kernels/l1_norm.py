"""The shipped kernel: y = x / mean(|x|, dim=1, keepdim=True) in one pass over memory, in KernelBench form.

Promise: for fp32, fp64, fp16 and bf16 tensors of any rank >= 2, shape and strides the result is what the formula gives,
with sums in a fixed order (same input, same bits), 16-bit types added in fp32, one mean a row and no epsilon: a row of
zeros is NaN, as the formula says. The result is fresh, has the strides of torch.empty_like, and the input is only read.
Forward only. Nothing is compiled at import; the first call builds the kernel (seconds) or finds it in the cache.
Under torch.compile a call is one operator of the graph, fullgraph=True included. (Inductor takes a lazily negated input
for its storage whatever operator reads it, torch 2.13.)

Differences from the eager formula, all on purpose: integers raise TypeError (eager: RuntimeError), complex numbers are
refused, and an fp16 or bf16 mean is not rounded to 16 bits.
"""

from collections.abc import Callable
from typing import Final

import torch
from torch import nn
from torch.autograd import forward_ad

from .cpu.op import empty_like, l1_norm_cpu
from .cuda.op import l1_norm_cuda

SUPPORTED_DTYPES: Final = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

# Where a tensor's device type leads. A kernel gets checked, non-empty tensors of one device and writes into the second.
_KERNELS: Final[dict[str, Callable[[torch.Tensor, torch.Tensor], None]]] = {
    "cpu": l1_norm_cpu,
    "cuda": l1_norm_cuda,
}

# Where fresh memory comes from, if not from torch.empty_like.
_ALLOCATORS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "cpu": empty_like,
}

# The size of the benchmark problem: 8.6 GB of fp32.
batch_size: Final = 32768
dim: Final = 65535


def l1_norm(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Divide each row of x, along dim 1, by the mean of its magnitudes.

    Args:
        x: Tensor of rank >= 2 with dtype fp32, fp64, fp16 or bf16; any strides, also 0; may be empty.
        out: Where to put the result; same shape, dtype and device as x, no memory shared with x or within itself.
            Reusing one saves the page faults of fresh memory, which on a CPU take longer than the kernel.

    Returns:
        out, or a fresh torch.Tensor with the strides of torch.empty_like(x).

    Raises:
        TypeError: x or out is no plain tensor, or the dtype is not supported.
        IndexError: x has no dim 1.
        ValueError: out does not fit x.
        NotImplementedError: There is no kernel for the tensor's device or layout.
        RuntimeError: A gradient is asked for. BuildError, one of them: the kernel could not be built.
    """
    if out is None and torch.compiler.is_dynamo_compiling():
        compiled: torch.Tensor = _operator(x)
        return compiled
    _check_plain(x, "x")
    if x.dim() < 2:
        raise IndexError(f"l1_norm normalizes along dim 1: x needs rank >= 2, got shape {tuple(x.shape)}")
    if x.dtype not in SUPPORTED_DTYPES:
        supported = ", ".join(str(dtype).removeprefix("torch.") for dtype in SUPPORTED_DTYPES)
        raise TypeError(f"l1_norm does not support {x.dtype}: expected one of {supported}; convert x first")
    kernel = _KERNELS.get(x.device.type)
    if kernel is None:
        raise NotImplementedError(
            f"l1_norm has no {x.device.type} kernel in this checkout: expected a tensor on {' or '.join(_KERNELS)}"
        )
    _check_forward_only(x, "x")
    x = x.detach().resolve_neg()
    if out is None:
        out = _ALLOCATORS.get(x.device.type, torch.empty_like)(x)
    else:
        _check_out(x, out)
    if x.numel() > 0:
        kernel(x, out)
    return out


# What torch.compile puts into its graph for a call: it may know that x is read and what the result looks like, and no
# more. The name is this module's, of which copies may be loaded beside each other: each must run its own code.
@torch.library.custom_op(f"{__name__.replace('.', '_')}::l1_norm", mutates_args=())
def _operator(x: torch.Tensor) -> torch.Tensor:
    return l1_norm(x)


@_operator.register_fake
def _result_like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _check_plain(x: torch.Tensor, name: str) -> None:
    if type(x) is not torch.Tensor and type(x) is not nn.Parameter:
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        raise TypeError(f"l1_norm: {name} must be a plain torch.Tensor, got {kind}")
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        raise TypeError(f"l1_norm: {name} is inside a torch.func transform (vmap, grad, jvp), which is not supported")
    if x.layout != torch.strided:
        raise NotImplementedError(f"l1_norm needs a dense tensor, {name} has layout {x.layout}: call to_dense() first")


def _check_forward_only(x: torch.Tensor, name: str) -> None:
    if x.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(
            f"l1_norm is forward only and {name} requires grad: pass {name}.detach() or call it under torch.no_grad()"
        )
    # A level is open only inside forward_ad.dual_level(); only there can a tensor carry a tangent.
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None:
        raise RuntimeError(f"l1_norm is forward only and {name} carries a tangent: pass {name}.detach()")


def _check_out(x: torch.Tensor, out: torch.Tensor) -> None:
    _check_plain(out, "out")
    _check_forward_only(out, "out")
    expected, got = (x.shape, x.dtype, x.device), (out.shape, out.dtype, out.device)
    if expected != got:
        raise ValueError(
            f"l1_norm: out must have the shape, dtype and device of x, {tuple(x.shape)} {x.dtype} {x.device}, "
            f"got {tuple(out.shape)} {out.dtype} {out.device}"
        )
    if out.is_neg():
        raise ValueError("l1_norm: out must not be a negated view")
    if torch._C._overlaps(x, out) or _overlaps_itself(out):
        raise ValueError("l1_norm: out must share no memory with x, nor one place among its own elements")
    torch.autograd.graph.increment_version(out)


def _overlaps_itself(x: torch.Tensor) -> bool:
    # Sorted by stride, each dimension must step over all that the smaller ones reach.
    reach = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach = stride * (size - 1) + reach
    return False


class ModelNew(nn.Module):
    """The fused model; what a harness in KernelBench form looks for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize x along dim 1; see `l1_norm`."""
        return l1_norm(x)


def get_inputs() -> list[torch.Tensor]:
    """The input of the benchmark problem, (32768, 65535) fp32 uniform in [0, 1)."""
    return [torch.rand(batch_size, dim)]


def get_init_inputs() -> list[object]:
    """Arguments of ModelNew: none."""
    return []
