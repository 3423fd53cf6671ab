"""Slots in the memory of a GPU: the counterpart of `memory` for the target cuda.

The judging process allocates with the driver (never from torch's pool: an exported allocation is visible as a whole)
and exports it through CUDA IPC; the worker opens it. Data lie flush with the end of the allocation, so that a large
enough access past the input leaves it, and everything in front of them up to one margin is canary.

Where the driver does not share memory between processes (under WSL2, in some containers), the slot is the host's
(`memory.Slot`), and the worker pins it and shows it to the GPU under an address of its own (`PinnedSlot`): slower, and
the judging process still owns every byte.

The driver is called directly (``libcuda.so.1``): torch offers no allocation outside its pool.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache

import torch

from .memory import ALIGNMENT, MARGIN, MARGIN_BYTE, GuardedMap, OutOfMemoryError

#: The driver maps memory in pieces of 2 MiB: a smaller allocation would share its piece with others.
_PIECE = 2 << 20
_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
#: CUDA_ERROR_OUT_OF_MEMORY.
_OUT_OF_MEMORY = 2
#: cuMemHostRegister: for every context, and mapped into the GPU's addresses.
_PORTABLE_AND_MAPPED = 1 | 2


class IpcError(RuntimeError):
    """The driver refuses to share memory between processes here; the message is its own."""


class DeviceSlot:
    """The judging process's side: device memory that a worker can open. Same calls as `memory.Slot`."""

    fd = -1

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self.capacity = 0
        self.handle = ""
        self._pointer = 0
        self._whole = torch.empty(0, dtype=torch.uint8, device=self._device)

    def place(self, storage: torch.Tensor, slack: int = 0) -> int:
        """Copy a 1-D storage flush with the end; returns the byte offset of its start in the slot."""
        nbytes = storage.numel() * storage.element_size()
        start = self._reserve(nbytes + slack)
        window = self.window(start)
        window[:MARGIN].fill_(MARGIN_BYTE)
        window[MARGIN + nbytes :].fill_(MARGIN_BYTE)
        if nbytes:
            window[MARGIN : MARGIN + nbytes].copy_(storage.view(torch.uint8))
        torch.cuda.synchronize(self._device)
        return start

    def reserve_filled(self, nbytes: int, pattern: torch.Tensor) -> int:
        """Room for an output of ``nbytes``, filled with a repeated 1-D byte pattern; returns its byte offset."""
        start = self._reserve(nbytes)
        if nbytes:
            room = self.data(start, nbytes).view(torch.int64)
            room.fill_(int(pattern.view(torch.int64)[0]))
        torch.cuda.synchronize(self._device)
        return start

    def window(self, start: int) -> torch.Tensor:
        """Margin, data and tail as bytes, shared with the worker."""
        return self._whole[start - MARGIN : self.capacity]

    def data(self, start: int, nbytes: int) -> torch.Tensor:
        """The data alone as bytes, shared with the worker."""
        return self._whole[start : start + nbytes]

    def close(self) -> None:
        """Give the memory back."""
        self._whole = torch.empty(0, dtype=torch.uint8, device=self._device)
        if self._pointer:
            torch.cuda.synchronize(self._device)
            with context(self._device):
                check(driver().cuMemFree_v2(ctypes.c_uint64(self._pointer)), "cuMemFree")
        self._pointer, self.capacity = 0, 0

    def _reserve(self, nbytes: int) -> int:
        aligned = -(-nbytes // ALIGNMENT) * ALIGNMENT
        if aligned + MARGIN > self.capacity:
            self._grow(aligned + MARGIN)
        return self.capacity - aligned

    def _grow(self, needed: int) -> None:
        self.close()
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info(self._device)
        capacity = _PIECE
        while capacity < needed:
            capacity = capacity * 2 if capacity < 1 << 30 else -(-needed // _PIECE) * _PIECE
        if capacity > free:
            raise OutOfMemoryError(f"needs {needed / 2**30:.1f} GiB on the GPU, have {free / 2**30:.1f} GiB")
        pointer = ctypes.c_uint64()
        with context(self._device):
            check(driver().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(capacity)), "cuMemAlloc")
            self._pointer, self.capacity = pointer.value, capacity
            handle = (ctypes.c_char * _HANDLE_BYTES)()
            check(driver().cuIpcGetMemHandle(ctypes.byref(handle), pointer), "cuIpcGetMemHandle")
        self.handle = bytes(handle).hex()
        self._whole = tensor_at(self._pointer, capacity, self._device)


class OpenedSlot:
    """The worker's side. Same calls as `memory.GuardedMap`."""

    def __init__(self, handle: str, capacity: int, device: str) -> None:
        self.capacity = capacity
        self.handle = handle
        self._device = torch.device(device)
        raw = bytes.fromhex(handle)
        opened = ctypes.c_uint64()
        holder = _IpcHandle.from_buffer_copy(raw)
        with context(self._device):
            code = driver().cuIpcOpenMemHandle_v2(ctypes.byref(opened), holder, _LAZY_PEER_ACCESS)
            check(code, "cuIpcOpenMemHandle")
        self._pointer = opened.value

    def tensor(self, start: int, nbytes: int) -> torch.Tensor:
        """``nbytes`` bytes from ``start`` on, as a 1-D uint8 tensor over the shared memory."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        return tensor_at(self._pointer + start, nbytes, self._device)

    def close(self) -> None:
        """Unmap; tensors over it must not be used any more."""
        torch.cuda.synchronize(self._device)
        with context(self._device):
            check(driver().cuIpcCloseMemHandle(ctypes.c_uint64(self._pointer)), "cuIpcCloseMemHandle")


class PinnedSlot:
    """The worker's side of a slot that lies on the host: pinned, and seen by the GPU. Same calls as `OpenedSlot`.

    The page behind the data stays forbidden, to the GPU as well.
    """

    handle = ""

    def __init__(self, fd: int, capacity: int, device: str) -> None:
        self.capacity = capacity
        self._device = torch.device(device)
        self._host = GuardedMap(fd, capacity)
        address, mapped = ctypes.c_void_p(self._host.address), ctypes.c_uint64()
        with context(self._device):
            code = driver().cuMemHostRegister_v2(address, ctypes.c_size_t(capacity), _PORTABLE_AND_MAPPED)
            check(code, "cuMemHostRegister")
            code = driver().cuMemHostGetDevicePointer_v2(ctypes.byref(mapped), address, 0)
            check(code, "cuMemHostGetDevicePointer")
        self._pointer = mapped.value

    def tensor(self, start: int, nbytes: int) -> torch.Tensor:
        """``nbytes`` bytes from ``start`` on, as a 1-D uint8 tensor that calls itself one of the GPU."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        return tensor_at(self._pointer + start, nbytes, self._device)

    def close(self) -> None:
        """Unpin and unmap; tensors over it must not be used any more."""
        torch.cuda.synchronize(self._device)
        with context(self._device):
            check(driver().cuMemHostUnregister(ctypes.c_void_p(self._host.address)), "cuMemHostUnregister")
        self._host.close()


class _IpcHandle(ctypes.Structure):
    """CUipcMemHandle: passed by value."""

    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class _Array:
    """Device memory as torch takes it: the CUDA array interface, version 3."""

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


def tensor_at(pointer: int, nbytes: int, device: torch.device) -> torch.Tensor:
    """A uint8 tensor over ``nbytes`` bytes of device memory that somebody else owns."""
    return torch.as_tensor(_Array(pointer, nbytes), device=device)


@contextlib.contextmanager
def context(device: torch.device) -> Iterator[None]:
    """Makes the device's context, which the driver's calls need, the current one; then the one before it again.

    Nothing is written to memory that torch's pool has ready: a worker has poisoned it for a call.
    """
    with torch.cuda.device(device):
        torch.empty(1, device=device)  # a device's context is made with the first memory that is asked for
        yield


@cache
def driver() -> ctypes.CDLL:
    """The driver's own library; its calls return a number that `check` turns into words."""
    return ctypes.CDLL("libcuda.so.1")


def check(code: int, call: str) -> None:
    """Raise where a call of the driver did not succeed.

    Raises:
        OutOfMemoryError: memory was short.
        IpcError: anything else.
    """
    if code == 0:
        return
    text = ctypes.c_char_p()
    driver().cuGetErrorString(code, ctypes.byref(text))
    words = text.value.decode() if text.value else f"error {code}"
    raise OutOfMemoryError(f"{call}: {words}") if code == _OUT_OF_MEMORY else IpcError(f"{call}: {words}")
