"""What a worker looks at around a call: the input as its caller holds it, and the modes of the process.

Memory is watched from outside (`slots`). What lies outside no memory of the judging process is looked at here: what
the caller's tensor object says of itself, and what every later operation in the process depends on. All of it is bound
when this module is imported, which is before any candidate is. What a candidate changes while it is imported or made
counts as part of it; the first look is behind that.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import builtins
import contextlib
import copy
import decimal
import faulthandler
import functools
import gc
import inspect
import json
import logging
import math
import multiprocessing
import operator
import os
import pickle
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
import torch.multiprocessing
import torch.nn.modules.module as all_modules
import torch.utils.deterministic

from . import worker_arithmetic
from .protocol import printable

_Tensor = torch.Tensor
_objects, _collect = gc.get_objects, gc.collect


def attribute(name: str) -> Callable[[torch.Tensor], object]:
    """An attribute of tensors as it is now, whatever is put in its place later."""
    getter: Callable[[torch.Tensor], object] = inspect.getattr_static(_Tensor, name).__get__
    return getter


#: How names begin that torch's compiler gives its notes on a tensor (`torch._dynamo.mark_dynamic`).
_COMPILERS = ("_dynamo_", "_has_dynamo", "_specialize_on")


def carried(tensor: torch.Tensor) -> Iterator[str]:
    """Names of what it carries beside its values; what torch's compiler notes on every tensor is nobody's."""
    return (printable(name).replace("\n", "\\n") for name in map(str, vars(tensor)) if not name.startswith(_COMPILERS))


_gradient = attribute("grad")
#: What a tensor object says of itself, by the words of a report.
_FACTS: dict[str, Callable[[torch.Tensor], object]] = {
    "shape": _Tensor.size,
    "strides": _Tensor.stride,
    "storage offset": _Tensor.storage_offset,
    "dtype": attribute("dtype"),
    "requires_grad": attribute("requires_grad"),
    "negative bit": _Tensor.is_neg,
    "memory": _Tensor.data_ptr,
    "class": type,
    "attributes": lambda tensor: tuple(sorted(carried(tensor))),
    "whether it has a gradient": lambda tensor: _gradient(tensor) is not None,
}
_version = attribute("_version")

_random_state = torch.get_rng_state
_random_state_of_python = random.getstate
_random_state_of_numpy = np.random.get_state
_equal = torch.equal
_errors_of_numpy = np.geterr
#: Without the words for numbers, of which there would be dozens at every call.
_handler, _block, _locale_now = _signal.getsignal, _signal.pthread_sigmask, _locale.setlocale
_folder, _file_of = os.getcwd, os.fstat
_decimals, _set_umask = decimal.getcontext, os.umask
_depth, _USUAL_DEPTH = sys.getrecursionlimit, sys.getrecursionlimit()
_timer, _priority, _limit = signal.getitimer, os.getpriority, resource.getrlimit
_USUAL_HOOKS = (sys.__excepthook__, threading.__excepthook__, sys.__unraisablehook__)
_SIGNALS = sorted(signal.valid_signals())
_NAMED_SIGNALS = frozenset(map(int, signal.Signals))
#: How many numbers, and how many digits of each, torch and numpy print.
_PRINTED, _printed_by_numpy = vars(torch._tensor_str.PRINT_OPTS), np.get_printoptions
#: Where torch keeps what Python code has put in place of its own operators: "aten/abs/CPU" and the like.
_REPLACED: set[str] = getattr(torch.library, "_impls", set())
_in_autocast = torch.is_autocast_enabled
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


def _of_all(entry: tuple[object, ...]) -> bool:
    """Whether an entry of Python's list of filters is for every warning, or for all that a program gives of its own.

    Not one for what is deprecated: libraries add such as they are imported, at a first call, too.
    """
    _, message, category, module, line = entry
    return message is None and module is None and category in _GIVEN and not line


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
    return ", ".join(map(_signal_name, sorted(found))) if found else "none"


def _signal_name(number: int) -> str:
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
    "whether what is allocated is traced": tracemalloc.is_tracing,
    "a function that traces the interpreter": sys.gettrace,
    "a function that profiles the interpreter": sys.getprofile,
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
    "which messages are logged": lambda: logging.root.manager.disable,
    "from which level on messages are logged": lambda: logging.root.level,
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
if hasattr(os, "sched_getaffinity"):
    _MODES["the processors that it may run on"] = functools.partial(os.sched_getaffinity, 0)
if _precision is not None:
    _MODES["the precision of cuBLAS's float32 products"] = functools.partial(_products, "cuda")
    _MODES["the precision of oneDNN's float32 products"] = functools.partial(_products, "mkldnn")
#: Namespaces whose functions everybody calls.
_LIBRARY: dict[str, ModuleType | type] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.UntypedStorage": torch.UntypedStorage,
    "torch.nn": torch.nn,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.nn.init": torch.nn.init,
    "torch.nn.utils": torch.nn.utils,
    "torch.autograd": torch.autograd,
    "torch.optim.Optimizer": torch.optim.Optimizer,
    "torch.testing": torch.testing,
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.testing": np.testing,
    "builtins": builtins,
    "math": math,
    "random": random,
    "os": os,
    "os.path": os.path,
    "time": time,
    "copy": copy,
    "json": json,
    "pickle": pickle,
    "re": re,
    "functools": functools,
    "subprocess": subprocess,
    "tempfile": tempfile,
}
#: The layers of a network and the optimisers, each with what it has of its own.
_LAYERS: dict[str, type] = {
    f"{space.__name__}.{name}": each
    for space, base in ((torch.nn, torch.nn.Module), (torch.optim, torch.optim.Optimizer))
    for name, each in vars(space).items()
    if isinstance(each, type) and issubclass(each, base) and each is not base
}
_TORCH = str(Path(torch.__file__).parent) + os.sep
#: How the processor does arithmetic, by the words of a report.
_ARITHMETIC = ("rounding", "subnormal numbers")


def tensors(collected: bool) -> int:
    """How many tensors the process has, whoever holds them.

    Args:
        collected: whether those count no more which only Python's collector can find.
    """
    if collected:
        _collect()
    return sum(issubclass(type(each), _Tensor) for each in _objects())


class InputWatch:
    """A tensor as its caller holds it, before a call."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._facts = _facts(tensor)
        self._version = _told(_version, tensor)

    def changes(self) -> tuple[str, ...]:
        """What the caller's tensor says otherwise now, in words."""
        now = _facts(self._tensor)
        return tuple(
            f"{name} {_said(old)} -> {_said(now[name])}" for name, old in self._facts.items() if old != now[name]
        )

    @property
    def written(self) -> bool:
        """Whether an operation has written to the tensor, whatever it holds now."""
        return _told(_version, self._tensor) != self._version


def _facts(tensor: torch.Tensor) -> dict[str, object]:
    return {name: _told(fact, tensor) for name, fact in _FACTS.items()}


def _told(asked: Callable[..., object], *of: object) -> object:
    """What is answered; a word where the question raises, the same one while it raises the same."""
    try:
        return asked(*of)
    except Exception as error:  # noqa: BLE001 - what is asked may be the candidate's by now, and torch refuses some
        return f"cannot be told ({type(error).__name__})"


def _said(fact: object) -> str:
    return str(list(fact)) if isinstance(fact, tuple) else str(fact)


class _Functions:
    """The functions of one namespace, when the candidate was ready to be called."""

    def __init__(self, space: ModuleType | type) -> None:
        self._space = space
        present = vars(space)
        self._names = frozenset(present)
        self._all = list(present.values())
        self._functions = {each: value for each, value in present.items() if callable(value)}

    def changes(self) -> list[str]:
        """The names of those that are others now, or gone."""
        present = vars(self._space)
        # A dictionary keeps its order where a value is replaced, and what is new stands behind.
        if len(present) >= len(self._all) and all(map(operator.is_, self._all, present.values())):
            changed = []
        else:
            changed = [each for each, function in self._functions.items() if present.get(each) is not function]
        if isinstance(self._space, type) and len(present) != len(self._names):
            # What is put before something that it inherits.
            new = present.keys() - self._names - {"__annotations__"}  # made when somebody asks for them
            changed += [each for each in new if hasattr(self._space.__base__, each)]
        return [each for each in changed if not _from_torch(present.get(each))]


class ProcessWatch:
    """The modes of the process, and the functions of its library, when the candidate was ready to be called."""

    def __init__(self) -> None:
        self._modes = dict(_modes())
        self._arithmetic = worker_arithmetic.here()
        self._random = _told(_random_state)
        self._others = _other_random_states()
        self._environment, self._encoded = dict(os.environ), _encoded()
        self._replaced = set(_REPLACED)
        self._functions = {name: _Functions(space) for name, space in (*_LIBRARY.items(), *_LAYERS.items())}
        self._handlers = list(map(_handler, _SIGNALS))

    def changes(self, shared_out: bool = False) -> tuple[str, ...]:
        """What is otherwise now, in words.

        Args:
            shared_out: whether torch's threads have been at work, so that they can be asked, too.
        """
        now = dict(_modes())
        found = [
            f"{name}: {self._modes.get(name, 'unknown')} -> {now[name]}"
            for name in now
            if now[name] != self._modes.get(name)
        ]
        found += self._in_torchs_threads() if shared_out else ()
        if not _told(_equal, self._random, _told(_random_state)):
            found.append("the state of the random numbers")
        others = _other_random_states()
        found += [f"the state of {name}'s random numbers" for name in others if others[name] != self._others[name]]
        # What is set for the first time is a library's that was just loaded; what is changed was the caller's.
        if _encoded() != self._encoded:
            lost = [name for name, value in self._environment.items() if os.environ.get(name) != value]
            found += [f"the environment variable {name}" for name in lost]
        return (*found, *self.replaced(), *self._at_signals())

    def replaced(self) -> tuple[str, ...]:
        """What of the libraries that others use, too, does something else now."""
        found: list[str] = []
        if len(_REPLACED) != len(self._replaced):
            found += [f"torch's operator {name}" for name in sorted(_REPLACED - self._replaced) if _computes(name)]
        for name, functions in self._functions.items():
            found += [f"{name}.{each}" for each in functions.changes()]
        return tuple(found)

    def _at_signals(self) -> Iterator[str]:
        """The signals at which something else is done now."""
        present = list(map(_handler, _SIGNALS))
        if not all(map(operator.is_, self._handlers, present)):
            for each, *handlers in zip(_SIGNALS, self._handlers, present, strict=True):
                then, now = (_told(_named, handler) for handler in handlers)
                if now != then:
                    yield f"what {_signal_name(each)} does: {then} -> {now}"

    def _in_torchs_threads(self) -> Iterator[str]:
        """What is otherwise in the threads that torch shares its work among: neither as usual nor as in the caller's.

        What the caller's was when the candidate was ready is no other: a mode that is set at import is inherited, or
        not, by whether these threads had been started before.
        """
        with contextlib.suppress(Exception):  # a mode that was left around torch's operators may raise anything
            found = worker_arithmetic.in_torchs_threads()
            for name, now, then, usual in zip(
                _ARITHMETIC, found, self._arithmetic, worker_arithmetic.USUAL, strict=True
            ):
                if now not in (then, usual):
                    yield f"{name} in the threads that torch shares its work among: {usual} -> {now}"


def _encoded() -> dict[bytes, bytes]:
    """The environment variables as Python has them, which is compared at once; nothing of one in their place."""
    return dict(getattr(os.environ, "_data", {}))


def _other_random_states() -> dict[str, object]:
    """The states of the random numbers that are not torch's; equal where nobody drew or seeded."""
    return {"Python": _told(_random_state_of_python), "numpy": _told(_numpys_random_state)}


def _numpys_random_state() -> tuple[object, ...]:
    name, key, *others = _random_state_of_numpy()
    return name, key.tobytes(), *others  # type: ignore[attr-defined]


def _computes(name: str) -> bool:
    """Whether a replaced operator is one of torch's own, on a device that computes: "aten/abs/CPU".

    torch's compiler adds its own for tensors that hold nothing ("Meta") when it is first used.
    """
    space, *_, key = name.split("/")
    return space == "aten" and key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "Autograd")


def _from_torch(function: object) -> bool:
    """Whether a function's code is torch's own: its compiler wraps a few when it is first used."""
    code = getattr(function, "__code__", None)
    return str(getattr(code, "co_filename", "")).startswith(_TORCH)


def _named(handler: object) -> str:
    """What is done at a signal, in a word that is the same for the same function."""
    if isinstance(handler, int):
        return signal.Handlers(handler).name
    return getattr(handler, "__qualname__", "") or str(handler)


def _hook(function: object) -> str:
    """What is called when an exception was not caught: a word for Python's own, and for those of torch."""
    return "the usual" if function in _USUAL_HOOKS or _from_torch(function) else _named(function)


def _modes() -> Iterator[tuple[str, str]]:
    for name, mode in _MODES.items():
        yield name, str(_told(mode))
    yield from zip(_ARITHMETIC, worker_arithmetic.here(), strict=True)
    with contextlib.suppress(OSError):  # a folder may be gone; then nothing is said of it
        yield "the working folder", _folder()
