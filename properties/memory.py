"""Memory that the judging process owns and a worker can see: one *slot* per input or output.

A slot is an anonymous file that both processes map. In the worker's mapping the last byte is followed by a page that
nothing may touch, and data lie flush with the end, so that a read or write past the input ends in SIGSEGV there
(`GUARDED`). Starts are 64-byte aligned, as torch's own allocations are; the up to 63 bytes between the data and the end
and one page in front hold canaries.

The judging process fills a slot before a call and compares it afterwards; no claim of the worker is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

PAGE = mmap.PAGESIZE
#: torch's CPU allocator aligns to 64 bytes; kernels may rely on that where the storage offset is 0.
ALIGNMENT = 64
#: Bytes of canary in front of the data.
MARGIN = PAGE
#: The only byte that, repeated, is a NaN in every float format (and the default NaN of none).
MARGIN_BYTE = 0xFF
_SMALLEST = 1 << 20

PROT_NONE = 0
MAP_FIXED = 0x10


class OutOfMemoryError(RuntimeError):
    """A slot does not fit: the message says how much was needed and how much is there."""


def available_bytes() -> int | None:
    """Memory that can be had without swapping, or None where the system does not say (not Linux)."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as table:
            for line in table:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


class Slot:
    """The judging process's side of one slot.

    The file only grows; a worker that is told of another capacity maps it anew.
    """

    handle = ""

    def __init__(self) -> None:
        self.fd = _anonymous_file()
        self.capacity = 0
        self._map: mmap.mmap | None = None

    def place(self, storage: torch.Tensor, slack: int = 0) -> int:
        """Copy a 1-D storage flush with the end; returns the byte offset of its start in the slot.

        Args:
            storage: what to copy.
            slack: bytes of canary between the data and the end, so that an access past the data does not die.
        """
        nbytes = storage.numel() * storage.element_size()
        start = self._reserve(nbytes + slack)
        whole = self.window(start)
        whole.fill_(MARGIN_BYTE)
        if nbytes:
            whole[MARGIN : MARGIN + nbytes].copy_(storage.view(torch.uint8))
        return start

    def reserve_filled(self, nbytes: int, pattern: torch.Tensor) -> int:
        """Room for an output of ``nbytes``, filled with a repeated 1-D byte pattern; returns its byte offset."""
        start = self._reserve(nbytes)
        if nbytes:
            room = self.data(start, nbytes)
            room.view(-1, pattern.numel()).copy_(pattern)
        return start

    def window(self, start: int) -> torch.Tensor:
        """Margin, data and tail as bytes, shared with the worker."""
        return self._bytes()[start - MARGIN : self.capacity]

    def data(self, start: int, nbytes: int) -> torch.Tensor:
        """The data alone as bytes, shared with the worker."""
        return self._bytes()[start : start + nbytes]

    def close(self) -> None:
        """Give the memory back; mapped tensors must be gone by then (they keep the map alive otherwise)."""
        self._map = None
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def _reserve(self, nbytes: int) -> int:
        aligned = -(-nbytes // ALIGNMENT) * ALIGNMENT
        needed = aligned + MARGIN
        if needed > self.capacity:
            self._grow(needed)
        return self.capacity - aligned

    def _grow(self, needed: int) -> None:
        free = available_bytes()
        if free is not None and needed > free:
            raise OutOfMemoryError(f"needs {needed / 2**30:.1f} GiB of shared memory, have {free / 2**30:.1f} GiB")
        capacity = max(_SMALLEST, self.capacity)
        while capacity < needed:
            capacity *= 2
        os.ftruncate(self.fd, capacity)
        self.capacity = capacity
        self._map = mmap.mmap(self.fd, capacity)

    def _bytes(self) -> torch.Tensor:
        if self._map is None:
            self._grow(MARGIN)
        assert self._map is not None
        return torch.frombuffer(self._map, dtype=torch.uint8)


class GuardedMap:
    """The worker's side: the slot's file between two pages that may not be touched."""

    def __init__(self, fd: int, capacity: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._libc = libc
        self._length = capacity + 2 * PAGE
        self.capacity = capacity
        self.handle = ""
        self._base = self._mmap(None, self._length, PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        readable = mmap.PROT_READ | mmap.PROT_WRITE
        self.address = self._mmap(self._base + PAGE, capacity, readable, mmap.MAP_SHARED | MAP_FIXED, fd)

    def tensor(self, start: int, nbytes: int) -> torch.Tensor:
        """``nbytes`` bytes from ``start`` on, as a 1-D uint8 tensor over the shared memory."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8)
        buffer = (ctypes.c_uint8 * nbytes).from_address(self.address + start)
        return torch.frombuffer(buffer, dtype=torch.uint8)

    @contextlib.contextmanager
    def sealed(self) -> Iterator[None]:
        """A write to the slot ends the process, within the block."""
        self._libc.mprotect(self.address, self.capacity, mmap.PROT_READ)
        try:
            yield
        finally:
            self._libc.mprotect(self.address, self.capacity, mmap.PROT_READ | mmap.PROT_WRITE)

    def close(self) -> None:
        """Unmap; tensors over it must not be used any more."""
        self._libc.munmap(self._base, self._length)

    def _mmap(self, address: int | None, length: int, protection: int, flags: int, fd: int) -> int:
        result: int = self._libc.mmap(address, length, protection, flags, fd, 0)
        if result == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), f"mmap of {length} bytes failed: {os.strerror(ctypes.get_errno())}")
        return result


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("kernelproof-slot", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # A worker holds this file, too: cutting it short would end the judging process (SIGBUS).
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
        return fd
    with tempfile.TemporaryFile() as file:  # macOS: an unlinked file
        return os.dup(file.fileno())
