"""Which targets this machine has, and what it is: facts for the run header and for what is not run."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch


@dataclass(frozen=True)
class Machine:
    """What results are to be read beside.

    Attributes:
        python, torch: versions.
        processor: the CPU's name.
        gpu: the GPU's name, or "".
        driver: the GPU driver's version, or "".
        no_gpu: why there is no usable GPU, or "".
    """

    python: str
    torch: str
    processor: str
    gpu: str
    driver: str
    no_gpu: str


@cache
def machine() -> Machine:
    """This machine. A GPU counts if a kernel can run on it: ``is_available()`` is true with no usable device, too."""
    gpu, no_gpu = "", ""
    if torch.version.cuda is None:
        no_gpu = "this torch is built without CUDA"
    elif not torch.cuda.is_available() or torch.cuda.device_count() == 0:
        no_gpu = "no CUDA device is visible"
    else:
        try:
            torch.zeros(1, device="cuda").add_(1).cpu()
            gpu = torch.cuda.get_device_name()
        except RuntimeError as error:
            no_gpu = f"the CUDA device cannot be used: {str(error).splitlines()[0]}"
    return Machine(platform.python_version(), torch.__version__, _processor(), gpu, _driver() if gpu else "", no_gpu)


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as table:
            for line in table:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _driver() -> str:
    try:
        with Path("/proc/driver/nvidia/version").open(encoding="utf-8", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        return "unknown"
    return next((word for word in words if word[0].isdigit() and "." in word), "unknown")
