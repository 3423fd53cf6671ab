"""The GPU beside which a time is to be read: name, driver, clocks, and what its memory can do. Nothing is ever set."""

from __future__ import annotations

import contextlib
import ctypes

import torch

from .timing import Bus

#: Numbers of cuDeviceGetAttribute: memory clock in kHz, width of the memory bus in bits, bytes of L2 cache.
_MEMORY_CLOCK, _BUS_WIDTH, _L2_BYTES = 36, 37, 38
#: Bits of nvml.h (nvmlClocksEventReason...), in words.
_REASONS = {
    0x2: "clocks set for applications",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}


def bus(device: int = 0) -> Bus:
    """The card's memory: two transfers a clock, over the whole width of its bus."""
    clock, width = _attribute(device, _MEMORY_CLOCK), _attribute(device, _BUS_WIDTH)
    in_part = " MIG " in torch.cuda.get_device_properties(device).name
    return Bus(clock * 1e3 * 2 * width / 8, _attribute(device, _L2_BYTES), whole=not in_part)


def identity(device: int = 0) -> str:
    """A name that the card has in every process and in no other place: its UUID, as nvidia-smi shows it."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def clocks(device: int = 0) -> dict[str, int]:
    """Clocks of this moment and the highest ones, in MHz; empty where nvidia-ml-py or the driver does not tell."""
    try:
        import pynvml
    except ImportError:
        return {}
    found: dict[str, int] = {}
    with contextlib.suppress(pynvml.NVMLError, AttributeError):
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(identity(device))
            for name, kind in (("sm", pynvml.NVML_CLOCK_SM), ("memory", pynvml.NVML_CLOCK_MEM)):
                found[f"{name}_mhz"] = int(pynvml.nvmlDeviceGetClockInfo(handle, kind))
                found[f"{name}_max_mhz"] = int(pynvml.nvmlDeviceGetMaxClockInfo(handle, kind))
        finally:
            pynvml.nvmlShutdown()
    return found


def throttled(device: int = 0) -> set[str]:
    """Why clocks are held down at this moment, in words; empty where nothing holds them, or nobody tells."""
    try:
        import pynvml
    except ImportError:
        return set()
    with contextlib.suppress(pynvml.NVMLError, AttributeError):
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(identity(device))
            # The call's name changed with driver 535; the bits did not.
            ask = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
            return reasons(int((ask or pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)))
        finally:
            pynvml.nvmlShutdown()
    return set()


def reasons(bits: int) -> set[str]:
    """The words for the bits of nvmlDeviceGetCurrentClocksEventReasons; that the card is idle is none."""
    return {word for bit, word in _REASONS.items() if bits & bit}


def _attribute(device: int, number: int) -> int:
    """A fact of the driver, or 0 where it does not tell."""
    driver = ctypes.CDLL("libcuda.so.1")
    handle, value = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), device):
        return 0
    return 0 if driver.cuDeviceGetAttribute(ctypes.byref(value), number, handle) else value.value
