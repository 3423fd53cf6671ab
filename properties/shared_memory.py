"""Fill the shared memory of every multiprocessor of a GPU, so that reading what was never written shows.

Shared memory keeps what the kernel before left there, often zeros, and a sum of parts that nobody wrote is then right
by luck. The kernel that fills it is handed to the driver as PTX: it needs no compiler, and no torch of any version.
"""

from __future__ import annotations

import ctypes

import torch

from .device_memory import IpcError, check, context, driver

#: One block a multiprocessor: each asks for all the shared memory that a block may have. Words as those of fresh global
#: memory: 3.4e38 in float32, NaN in float16.
_PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry fill(.param .u32 words)
{
  .reg .pred %done;
  .reg .u32 %count, %at, %step, %base, %place, %value;
  ld.param.u32 %count, [words];
  mov.u32 %at, %tid.x;
  mov.u32 %step, %ntid.x;
  mov.u32 %base, room;
  mov.u32 %value, 0x7f7f7f7f;
NEXT:
  setp.ge.u32 %done, %at, %count;
  @%done bra END;
  shl.b32 %place, %at, 2;
  add.u32 %place, %place, %base;
  st.shared.u32 [%place], %value;
  add.u32 %at, %at, %step;
  bra NEXT;
END:
  ret;
}
"""
#: Numbers of cuDeviceGetAttribute and cuFuncSetAttribute.
_MOST_SHARED_OF_A_BLOCK, _MULTIPROCESSORS = 97, 16
_SET_DYNAMIC_SHARED = 8
_THREADS = 1024


class SharedMemory:
    """The shared memory of one GPU; `fill` does nothing where its driver takes no such kernel."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._function = ctypes.c_void_p()
        with context(device):
            number = ctypes.c_int()
            check(driver().cuCtxGetDevice(ctypes.byref(number)), "cuCtxGetDevice")
            self._bytes, self._blocks = (
                self._attribute(number, name) for name in (_MOST_SHARED_OF_A_BLOCK, _MULTIPROCESSORS)
            )
            try:
                self._load()
            except IpcError:
                self._function = ctypes.c_void_p()

    @property
    def works(self) -> bool:
        """Whether `fill` fills."""
        return bool(self._function.value)

    def fill(self) -> None:
        """Enqueue the filling on the current stream."""
        if not self.works:
            return
        words = ctypes.c_uint32(self._bytes // 4)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(words), ctypes.c_void_p))
        stream = ctypes.c_void_p(torch.cuda.current_stream(self._device).cuda_stream)
        sizes = [ctypes.c_uint(size) for size in (self._blocks, 1, 1, _THREADS, 1, 1, self._bytes)]
        with torch.cuda.device(self._device):
            check(driver().cuLaunchKernel(self._function, *sizes, stream, arguments, None), "cuLaunchKernel")

    def _load(self) -> None:
        module = ctypes.c_void_p()
        check(driver().cuModuleLoadData(ctypes.byref(module), _PTX), "cuModuleLoadData")
        check(driver().cuModuleGetFunction(ctypes.byref(self._function), module, b"fill"), "cuModuleGetFunction")
        check(driver().cuFuncSetAttribute(self._function, _SET_DYNAMIC_SHARED, self._bytes), "cuFuncSetAttribute")

    @staticmethod
    def _attribute(number: ctypes.c_int, name: int) -> int:
        value = ctypes.c_int()
        check(driver().cuDeviceGetAttribute(ctypes.byref(value), name, number), "cuDeviceGetAttribute")
        return value.value
