"""What a result or an exception looks like from outside, as a worker tells it, and what a caller may do to a result.

What is asked of torch is bound when this module is imported, which is before any candidate is: one that patches how a
tensor tells its memory deceives only itself.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import traceback
from pathlib import Path

import torch

from .protocol import MAX_TEXT, OVERWRITTEN_BYTE, ErrorInfo, OutputMeta
from .worker_facts import attribute, carried
from .worker_ways import BITS

_Tensor = torch.Tensor
_size = torch.Tensor.size
_stride = torch.Tensor.stride
_storage = torch.Tensor.untyped_storage
_address = torch.UntypedStorage.data_ptr
_nbytes = torch.UntypedStorage.nbytes
_is_negated = torch.Tensor.is_neg
_is_conjugated = torch.Tensor.is_conj
_is_inference = torch.Tensor.is_inference
_view_dtype = torch.Tensor.view
_detach = torch.Tensor.detach
_fill = torch.Tensor.fill_
_size_of_one = torch.Tensor.element_size
_inference_mode = torch.inference_mode
_synchronize = torch.cuda.synchronize
_is_nested = attribute("is_nested")
_dtype = attribute("dtype")
_device = attribute("device")
_layout = attribute("layout")
_requires_grad = attribute("requires_grad")


#: Attributes of a result that are named.
_ATTRIBUTES_SHOWN = 5


def describe_output(result: object, input_span: tuple[int, int], current: int = 0, pending: str = "") -> OutputMeta:
    """What a result looks like from outside.

    Args:
        result: what the candidate returned.
        input_span: addresses of the input's storage.
        current: number of the GPU that is current after the call.
        pending: what a failed launch has left behind for the next operation to raise.
    """
    cls = type(result)
    name = f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "builtins" else cls.__qualname__
    if cls is not _Tensor:  # a class derived from it answers for itself, or raises; its name says enough
        return OutputMeta(name, current=current, pending=pending)
    assert isinstance(result, _Tensor)
    if _is_nested(result):  # it has no shape
        return OutputMeta("a nested torch.Tensor", current=current, pending=pending)
    name = "torch.Tensor"
    shape, dtype = tuple(_size(result)), str(_dtype(result)).removeprefix("torch.")
    device, layout = str(_device(result)), _layout(result)
    if layout is not torch.strided:
        return OutputMeta(name, True, shape, dtype, device, layout=str(layout), current=current, pending=pending)
    span = (0, 0)
    if device.partition(":")[0] in ("cpu", "cuda"):
        storage = _storage(result)
        span = (_address(storage), _address(storage) + _nbytes(storage))
    return OutputMeta(
        name,
        True,
        shape,
        dtype,
        device,
        tuple(_stride(result)),
        "strided",
        bool(_requires_grad(result)),
        span,
        input_span,
        current,
        pending,
        negated=_is_negated(result),
        inference=_is_inference(result),
        attributes=tuple(itertools.islice(carried(result), _ATTRIBUTES_SHOWN)),
    )


def readable(meta: OutputMeta, device: str) -> bool:
    """Whether there are values to copy out: a plain tensor on this device; anything else is rejected by what it is."""
    return (meta.type, meta.layout, meta.device) == ("torch.Tensor", "strided", device)


def part_of(result: object, meta: OutputMeta) -> object:
    """What a caller keeps who took a part of a result, all of it here: its memory, without the very object.

    Who takes memory back when the object is gone takes what somebody else still holds.
    """
    return _detach(result) if type(result) is _Tensor and meta.layout == "strided" else result


def write_over(result: object, meta: OutputMeta) -> None:
    """Write to a result as the caller may to whom it was given: who hands it out a second time hands out that.

    Nothing is done to what is rejected by itself (what is no plain tensor, lies in the input's memory, has less memory
    than elements, or is lazily negated or conjugated), nor where writing fails: that is no fault of the candidate's.
    """
    if type(result) is not _Tensor or meta.layout != "strided":
        return
    assert isinstance(result, _Tensor)
    (start, end), (given_start, given_end) = meta.storage, meta.input
    with contextlib.suppress(Exception):
        size = _size_of_one(result)
        if size not in BITS or _is_negated(result) or _is_conjugated(result):
            return
        if end - start < math.prod(meta.shape) * size or (start < given_end and given_start < end):
            return
        with _inference_mode():  # the only mode in which every tensor may be written to
            _fill(_view_dtype(_detach(result), BITS[size]), int.from_bytes(bytes([OVERWRITTEN_BYTE]) * size, "little"))
        if meta.device.startswith("cuda"):
            _synchronize(meta.device)  # else its memory may have a new owner, on another stream, before that


def describe_error(error: BaseException, path: str) -> ErrorInfo:
    """An exception as it is told.

    Args:
        error: what was raised.
        path: the candidate's file.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == path]
    where = f"{Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""
    bases = tuple(cls.__name__ for cls in type(error).__mro__)
    building = "BuildError" in bases or any(
        Path(frame.filename).parts[-3:] == ("torch", "utils", "cpp_extension.py") for frame in frames
    )
    try:
        text = str(error).removeprefix(f"{type(error).__name__}: ")  # of an error that quotes another
    except Exception as failure:  # noqa: BLE001 - a candidate's __str__ may raise anything
        text = f"(its message raises {type(failure).__name__})"
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return ErrorInfo(type(error).__name__, bases, text, where, building)
