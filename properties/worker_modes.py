"""The modes of a process: what every later operation in it depends on, and what a candidate leaves as it is.

All of it is bound when this module is imported, which is before any candidate is.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import contextlib
import ctypes
import decimal
import faulthandler
import functools
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.multiprocessing
import torch.nn.modules.module as all_modules
import torch.utils.deterministic

from . import worker_arithmetic
from .worker_facts import told
from .worker_library import from_torch

_errors_of_numpy = np.geterr
#: Without the words for numbers, of which there would be dozens at every call.
_block, _locale_now = _signal.pthread_sigmask, _locale.setlocale
_folder, _file_of = os.getcwd, os.fstat
_decimals, _set_umask = decimal.getcontext, os.umask
_depth, _USUAL_DEPTH = sys.getrecursionlimit, sys.getrecursionlimit()
_timer, _priority, _limit = signal.getitimer, os.getpriority, resource.getrlimit
_USUAL_HOOKS = (sys.__excepthook__, threading.__excepthook__, sys.__unraisablehook__, warnings.showwarning)
_NAMED_SIGNALS = frozenset(map(int, signal.Signals))
#: How many numbers, and how many digits of each, torch and numpy print.
_PRINTED, _printed_by_numpy = vars(torch._tensor_str.PRINT_OPTS), np.get_printoptions
_in_autocast, _narrowed_to = torch.is_autocast_enabled, torch.get_autocast_dtype
#: How float32 is multiplied, by backend; None in a torch that has no such settings.
_precision: Callable[[str, str], object] | None = getattr(torch._C, "_get_fp32_precision_getter", None)
#: Hooks that every module in the process runs, around its forward and its backward, and as it gets its parts.
_HOOKS = [hooks for name, hooks in vars(all_modules).items() if name.startswith("_global_") and isinstance(hooks, dict)]
#: By number, for some have two names.
_LIMITS = {number: name for name, number in sorted(vars(resource).items(), reverse=True) if name.startswith("RLIMIT_")}
#: What is done with every tensor that is kept for a gradient, if anything; None in a torch that does not tell.
_packed: Callable[[bool], object] | None = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


#: Kinds of warnings that programs give.
_GIVEN = (Warning, UserWarning, RuntimeWarning)


#: Patterns that every message begins with.
_ANYTHING = (".*", ".+", "(?s:.*)")


def _of_all(entry: tuple[object, ...]) -> bool:
    """Whether an entry of Python's list of filters is for every warning, or for all that a program gives of its own.

    Not one for what is deprecated: libraries add such as they are imported, at a first call, too.
    """
    _, message, category, module, line = entry
    any_message = message is None or getattr(message, "pattern", "") in _ANYTHING
    return any_message and module is None and category in _GIVEN and not line


def _stance() -> str:
    """What torch.compile is told to do with all that it is given; nothing before it was first used."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    return str(getattr(getattr(frames, "_stance", None), "stance", "default"))


def _products(backend: str) -> object:
    """How it multiplies float32. Torch's older setting has no word for "not set", and gives it back as "ieee"."""
    assert _precision is not None
    return "none" if (found := _precision(backend, "matmul")) == "ieee" else found


def _started_by() -> str:
    """How processes are started. The default is named where nobody chose: who asks for it first, sets it."""
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _umask() -> str:
    """The system tells it to who sets it alone; meanwhile what another thread makes is nobody else's to read."""
    found = _set_umask(0o077)
    _set_umask(found)
    return oct(found)


def _blocked() -> str:
    """The signals that do not reach the thread that asks, to interrupt it or to end it."""
    found = _block(signal.SIG_BLOCK, ())
    return ", ".join(map(signal_name, sorted(found))) if found else "none"


def signal_name(number: int) -> str:
    """Real-time signals have none."""
    return signal.Signals(number).name if number in _NAMED_SIGNALS else f"signal {number}"


def _leads_to(descriptor: int) -> str:
    """Which file a descriptor belongs to, in numbers."""
    try:
        found = _file_of(descriptor)
    except OSError:
        return "closed"
    return f"file {found.st_ino} of device {found.st_dev}"


#: Settings of torch's backends that it tells at once: not those of TF32, of which it may warn or refuse to.
_SWITCHES = {
    "whether cuDNN must be deterministic": "_get_cudnn_deterministic",
    "whether oneDNN must be deterministic": "_get_mkldnn_deterministic",
    "sums of cuBLAS's float16 products in parts": "_get_cublas_allow_fp16_reduced_precision_reduction",
    "sums of cuBLAS's bfloat16 products in parts": "_get_cublas_allow_bf16_reduced_precision_reduction",
    "whether attention may be flash attention": "_get_flash_sdp_enabled",
    "whether attention may save memory": "_get_mem_efficient_sdp_enabled",
    "whether attention may be plain": "_get_math_sdp_enabled",
    "whether attention may be cuDNN's": "_get_cudnn_sdp_enabled",
    "whether NNPACK is used": "_get_nnpack_enabled",
    "whether gradients flow back in several threads": "_is_multithreading_enabled",
    "whether sparse tensors are checked": "_check_sparse_tensor_invariants",
}
#: What later operations depend on, by the words of a report.
_MODES: dict[str, Callable[[], object]] = {
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "the number of threads": torch.get_num_threads,
    "whether gradients are taken": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "whether algorithms must be deterministic": torch.are_deterministic_algorithms_enabled,
    "whether it is enough to warn of those that are not": torch.is_deterministic_algorithms_warn_only_enabled,
    "the precision of float32 products": torch.get_float32_matmul_precision,
    "autocast on cpu": lambda: _in_autocast("cpu"),
    "autocast on cuda": lambda: _in_autocast("cuda"),
    "the type that autocast narrows to on cpu": lambda: _narrowed_to("cpu"),
    "the type that autocast narrows to on cuda": lambda: _narrowed_to("cuda"),
    "whether anomalies are looked for": torch.is_anomaly_enabled,
    "modes around torch's functions": torch._C._len_torch_function_stack,
    "modes around torch's operators": torch._C._len_torch_dispatch_stack,
    "whether oneDNN is used": torch._C._get_mkldnn_enabled,
    "whether cuDNN is used": torch._C._get_cudnn_enabled,
    "whether cuDNN looks for the fastest way": torch._C._get_cudnn_benchmark,
    "hooks on all modules": lambda: sum(map(len, _HOOKS)),
    "hooks on what is kept for gradients": lambda: _packed is not None and _packed(False) is not None,
    "warnings that are treated alike, whoever warns of what": lambda: sum(map(_of_all, warnings.filters)),
    **{words: getattr(torch._C, name) for words, name in _SWITCHES.items() if hasattr(torch._C, name)},
    "whether garbage is collected": gc.isenabled,
    "how often garbage is collected": gc.get_threshold,
    "what is told, and kept, of garbage": gc.get_debug,
    "whether what is allocated is traced": tracemalloc.is_tracing,
    "a function that traces the interpreter": sys.gettrace,
    "a function that profiles the interpreter": sys.getprofile,
    "a function that traces threads": threading.gettrace,
    "a function that profiles threads": threading.getprofile,
    "numpy's treatment of errors": lambda: sorted(_errors_of_numpy().items()),
    "a pending alarm": lambda: _timer(signal.ITIMER_REAL)[0] > 0,
    "a pending alarm of its own processor time": lambda: _timer(signal.ITIMER_VIRTUAL)[0] > 0,
    "a pending alarm of all its processor time": lambda: _timer(signal.ITIMER_PROF)[0] > 0,
    "which signals are blocked": _blocked,
    "the priority of its process": lambda: _priority(os.PRIO_PROCESS, 0),
    **{f"its limit {name}": functools.partial(_limit, number) for number, name in _LIMITS.items()},
    "who may read the files that it makes (umask)": _umask,
    # Torch's compiler raises it to 2000, which harms nobody.
    "how deeply functions may call each other": lambda: min(_depth(), _USUAL_DEPTH),
    "how often threads take turns": sys.getswitchinterval,
    "the precision of decimal numbers": lambda: _decimals().prec,
    "the rounding of decimal numbers": lambda: _decimals().rounding,
    "how many digits an integer may have": sys.get_int_max_str_digits,
    "how large the stacks of threads are": threading.stack_size,
    "whether a crash is told of": faulthandler.is_enabled,
    "how processes are started": _started_by,
    "how processes share tensors": torch.multiprocessing.get_sharing_strategy,
    "the number of threads between operators": torch.get_num_interop_threads,
    "whether fresh memory is filled": lambda: getattr(torch.utils.deterministic, "fill_uninitialized_memory", None),
    "whether a warning of torch is repeated": torch.is_warn_always_enabled,
    "how long connections wait": socket.getdefaulttimeout,
    "how warnings are shown": lambda: _hook(warnings.showwarning),
    "which messages are logged": lambda: logging.root.manager.disable,
    "from which level on messages are logged": lambda: logging.root.level,
    "which of the messages that are logged are kept back": lambda: len(logging.root.filters),
    "what shows messages where nothing was set up": lambda: type(logging.lastResort).__name__,
    "how much of a traceback is shown": lambda: getattr(sys, "tracebacklimit", None),
    "whether torch.compile compiles": _stance,
    "what is done with an exception that nobody can catch": lambda: _hook(sys.unraisablehook),
    "what is done with an exception that nobody catches": lambda: _hook(sys.excepthook),
    "what is done with one in a thread": lambda: _hook(threading.excepthook),
    "how torch prints numbers": lambda: tuple(_PRINTED.values()),
    "how numpy prints numbers": lambda: sorted(_printed_by_numpy().items()),
    "the locale": lambda: _locale_now(_locale.LC_ALL, None),
    "where its standard input comes from": lambda: _leads_to(0),
    "where its standard output goes": lambda: _leads_to(1),
    "where its standard error goes": lambda: _leads_to(2),
    "where Python prints": lambda: sys.stdout,
    "where Python prints errors": lambda: sys.stderr,
}
if hasattr(sys, "getdlopenflags"):
    _MODES["how libraries are opened"] = sys.getdlopenflags
if hasattr(os, "sched_getscheduler"):
    _MODES["how its process gets its turn"] = functools.partial(os.sched_getscheduler, 0)
if (_traps := getattr(ctypes.CDLL(None), "fegetexcept", None)) is not None:  # glibc's
    _MODES["which arithmetic ends the program"] = _traps
if hasattr(os, "sched_getaffinity"):
    _MODES["the processors that it may run on"] = functools.partial(os.sched_getaffinity, 0)
if _precision is not None:
    _MODES["the precision of cuBLAS's float32 products"] = functools.partial(_products, "cuda")
    _MODES["the precision of oneDNN's float32 products"] = functools.partial(_products, "mkldnn")
#: How the processor does arithmetic, by the words of a report.
ARITHMETIC = ("rounding", "subnormal numbers")


def modes() -> Iterator[tuple[str, str]]:
    """Each by the words of a report, and what it is set to now."""
    for name, mode in _MODES.items():
        yield name, str(told(mode))
    yield from zip(ARITHMETIC, worker_arithmetic.here(), strict=True)
    with contextlib.suppress(OSError):  # a folder may be gone; then nothing is said of it
        yield "the working folder", _folder()


def named(handler: object) -> str:
    """What is done at a signal, in a word that is the same for the same function."""
    if isinstance(handler, int):
        return signal.Handlers(handler).name
    return getattr(handler, "__qualname__", "") or str(handler)


def _hook(function: object) -> str:
    """What is called when an exception was not caught: a word for Python's own, and for those of torch."""
    return "the usual" if function in _USUAL_HOOKS or from_torch(function) else named(function)
