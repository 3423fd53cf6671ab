"""How a worker calls a model otherwise than plainly: from two threads, in a CUDA graph, compiled, in other settings.

Like the worker itself this holds no expected value, and what it needs of torch is bound when it is imported, which is
before any candidate is. Whatever the model raises goes through.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator

import torch

from .protocol import CALLS_A_THREAD, CALLS_IN_A_ROW, DIFFERENTIABLE, LEARNT, SECONDS_IN_A_ROW, THREADS
from .worker_gpu import FRESH_BYTE

#: Seconds after which a thread may lose Python's lock to the other, meanwhile: as often as can be.
_OFTEN = 1e-6
#: Elements of the buffer that keeps a GPU busy, and how often it is gone over: 64 MiB, some 50 us a time.
_BUSY_ELEMENTS, _BUSY_TIMES = 1 << 24, 40
#: Bytes of results that are compared together: one by one that would take longer than the calls. A GPU is waited for
#: each time, a CPU's caches hold no more.
_TOGETHER_BYTES = {"cpu": 1 << 18, "cuda": 1 << 26}

_Tensor = torch.Tensor
_equal = torch.equal
_stack, _ne, _any, _strided = torch.stack, torch.ne, torch.any, torch.strided
_now = time.monotonic
_empty = torch.empty
_zeros = torch.zeros
_fill = torch.Tensor.fill_
_add = torch.Tensor.add_
_view_dtype = torch.Tensor.view
_Stream = torch.cuda.Stream
_on_stream = torch.cuda.stream
_synchronize = torch.cuda.synchronize
_CudaGraph = torch.cuda.CUDAGraph
_compile = torch.compile
_no_grad = torch.no_grad
_enable_grad = torch.enable_grad
_detach, _ask, _view_as = torch.Tensor.detach, torch.Tensor.requires_grad_, torch.Tensor.view_as
_storage, _set_storage = torch.Tensor.untyped_storage, torch.Tensor.set_
_as_strided, _view_as_real = torch.Tensor.as_strided, torch.view_as_real
_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
_Parameter = torch.nn.Parameter
_inference_mode = torch.inference_mode
_Module = torch.nn.Module
_get_threads, _set_threads = torch.get_num_threads, torch.set_num_threads
_get_default_dtype, _set_default_dtype = torch.get_default_dtype, torch.set_default_dtype
_float64, _bfloat16 = torch.float64, torch.bfloat16
_get_deterministic, _set_deterministic = torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms
_get_precision, _set_precision = torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
_get_warn_only = torch.is_deterministic_algorithms_warn_only_enabled
_Barrier = threading.Barrier
_BrokenBarrier = threading.BrokenBarrierError
_Thread = threading.Thread
_get_interval, _set_interval = sys.getswitchinterval, sys.setswitchinterval
#: Integers of a size in bytes.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Model = Callable[..., object]


def _like(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of nothing where another is, to be given memory."""
    return _empty(0, dtype=dtype, device=x.device)


def _as_negated(made: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """What was made on a tensor's memory, read as that reads it."""
    return made._neg_view() if x.is_neg() else made


def _made_in_inference_mode(x: torch.Tensor) -> torch.Tensor:
    """A tensor on the same memory that belongs to inference mode, whoever looks at it later."""
    with _inference_mode():
        made = _set_storage(_like(x, x.dtype), _storage(x), x.storage_offset(), x.shape, x.stride())
        return _as_negated(made, x)


def _of_complex(x: torch.Tensor) -> torch.Tensor:
    """A view of complex numbers in the same memory, as the parts of a spectrum; of another type's, a plain view."""
    dtype = _COMPLEX.get(x.dtype)
    if dtype is None:
        return _view_as(x, x)
    count = _storage(x).nbytes() // (2 * x.element_size())
    spectrum = _set_storage(_like(x, dtype), _storage(x), 0, (count,), (1,))
    return _as_negated(_as_strided(_view_as_real(spectrum), x.shape, x.stride(), x.storage_offset()), x)


def _differentiable(x: torch.Tensor) -> torch.Tensor:
    """A view that an operation made of one that asks for a gradient."""
    with _enable_grad():
        return _view_as(_ask(_detach(x)), x)


#: What may be handed over in a tensor's place, made of the tensor. Those of `GUISES` lie on the same memory.
STAND_INS: dict[str, Callable[[torch.Tensor], object]] = {
    "a view of another tensor": lambda x: _view_as(x, x),
    "a view of complex numbers": _of_complex,
    "a parameter": lambda x: _Parameter(x, requires_grad=False),
    "an inference tensor": _made_in_inference_mode,
    DIFFERENTIABLE: _differentiable,
    LEARNT: lambda x: _Parameter(_detach(x)),
    "list": lambda x: x.tolist(),
    "None": lambda _: None,
    "number": lambda _: 1.0,
    "ndarray": lambda x: x.cpu().numpy(),
    "sparse": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
}


@contextlib.contextmanager
def _in_evaluation(model: Model) -> Iterator[None]:
    """The model is told that it is not trained now, in its own way; what it raises then is what its user would get."""
    if not isinstance(model, _Module):
        yield
        return
    before = [(each, _says_trained(each)) for each in _parts(model)]
    model.eval()
    try:
        yield
    finally:
        _as_before(before)


def _parts(model: torch.nn.Module) -> list[torch.nn.Module]:
    """A module and all in it, told apart by what they are: not every one can be hashed."""
    found, ahead = dict[int, torch.nn.Module](), [model]
    while ahead:
        each = ahead.pop()
        if id(each) not in found:
            found[id(each)] = each
            ahead += [part for part in each._modules.values() if part is not None]
    return list(found.values())


def _says_trained(part: torch.nn.Module) -> object:
    """Whether a module says that it is trained; None of one that does not say, as a frozen one of TorchScript."""
    with contextlib.suppress(Exception):
        return part.training
    return None


def _as_before(parts: list[tuple[torch.nn.Module, object]]) -> None:
    """Undo what `eval` has done, where it has: a part may have been in evaluation for good.

    Each is asked in its own way first. Nobody has promised that it can be trained: one that refuses stays as it is.
    """
    for ask in (lambda part, mode: part.train(mode), lambda part, mode: setattr(part, "training", mode)):
        for each, trained in parts:
            if trained is not None and _says_trained(each) != trained:
                with contextlib.suppress(Exception):
                    ask(each, trained)


@contextlib.contextmanager
def _evaluated(model: Model, inside: Callable[[], contextlib.AbstractContextManager[object]]) -> Iterator[None]:
    """In evaluation where no gradients are taken: how a model is served. A server says so, and so does its user."""
    with _in_evaluation(model), _in_evaluation(model), inside():
        yield


@contextlib.contextmanager
def _with_threads(count: int, _: Model) -> Iterator[None]:
    """For as long as this lasts, torch shares its work among so many threads."""
    before = _get_threads()
    _set_threads(count)
    try:
        yield
    finally:
        _set_threads(before)


@contextlib.contextmanager
def _by_default(dtype: torch.dtype) -> Iterator[None]:
    """For as long as this lasts, what is made without naming a type has this one, as while a large model is loaded."""
    before = _get_default_dtype()
    _set_default_dtype(dtype)
    try:
        yield
    finally:
        _set_default_dtype(before)


@contextlib.contextmanager
def _deterministically() -> Iterator[None]:
    """For as long as this lasts, torch uses deterministic algorithms alone, or raises."""
    before, warns = _get_deterministic(), _get_warn_only()
    _set_deterministic(True)
    try:
        yield
    finally:
        _set_deterministic(before, warn_only=warns)


@contextlib.contextmanager
def _imprecisely() -> Iterator[None]:
    """For as long as this lasts, torch may multiply matrices of float32 in TF32 or bfloat16, as in much training.

    Nothing is done where something was set already, in either of the two ways that torch has: of which it may refuse to
    tell, and what was set in one is not given back by the other.
    """
    try:
        exact = _get_precision() == "highest"
    except RuntimeError:
        exact = False
    if not exact:
        yield
        return
    _set_precision("medium")
    try:
        yield
    finally:
        _set_precision("highest")


#: What a caller may have set around a call, by the words of a report.
SETTINGS: dict[str, Callable[[Model], contextlib.AbstractContextManager[object]]] = {
    "inside torch.no_grad": lambda _: _no_grad(),
    "inside torch.inference_mode": lambda _: _inference_mode(),
    "in evaluation (model.eval())": _in_evaluation,
    "in evaluation, inside torch.no_grad": lambda model: _evaluated(model, _no_grad),
    "in evaluation, inside torch.inference_mode": lambda model: _evaluated(model, _inference_mode),
    "with one thread": functools.partial(_with_threads, 1),
    **{f"with {count} threads": functools.partial(_with_threads, count) for count in THREADS},
    # More than there are of anything that was made for a number of cores, this machine's included; in a container there
    # may be no more than a thousand threads, and several workers have as many at once.
    "with many threads": lambda model: _with_threads(max(131, 2 * _get_threads() + 1), model),
    "with float64 as the default type": lambda _: _by_default(_float64),
    "with bfloat16 as the default type": lambda _: _by_default(_bfloat16),
    "where algorithms must be deterministic": lambda _: _deterministically(),
    "where float32 products may be imprecise": lambda _: _imprecisely(),
}


def side_by_side(model: Model, inputs: tuple[torch.Tensor, torch.Tensor]) -> tuple[object, object]:
    """Call the model on two inputs from two threads at once, on a GPU on a stream each, `CALLS_A_THREAD` times.

    Returns:
        A result for each input: of all that its thread got, the one whose bits are rarest, for that is the one which
        the other thread has disturbed if any is.
    """
    ready = _Barrier(len(inputs))
    results: tuple[list[object], list[object]] = ([], [])
    errors: list[BaseException] = []

    def work(given: torch.Tensor, found: list[object]) -> None:
        try:
            with _on_stream(_Stream(given.device)) if given.is_cuda else contextlib.nullcontext():
                for _ in range(CALLS_A_THREAD):
                    ready.wait()
                    found.append(model(given))
                if given.is_cuda:
                    _synchronize(given.device)
        except _BrokenBarrier:
            return  # the other thread's error ends this one
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything; raised again below
            errors.append(error)
            ready.abort()

    interval = _get_interval()
    _set_interval(_OFTEN)
    try:
        threads = [_Thread(target=work, args=pair) for pair in zip(inputs, results, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _set_interval(interval)
    if errors:
        raise errors[0]
    return rarest(results[0]), rarest(results[1])


def elsewhere(model: Model, given: torch.Tensor) -> object:
    """Call the model from another thread, while this one waits: what was set up for one thread is not there.

    But for the GPU's context, which a thread has as soon as it asks torch for anything there.
    """
    results: list[object] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            if given.is_cuda:
                _synchronize(given.device)
            results.append(model(given))
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything; raised again below
            errors.append(error)

    thread = _Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def rarest(found: list[object]) -> object:
    """The one whose bits fewest others have; the earliest of several."""
    groups: list[list[object]] = []
    for each in found:
        alike = next((group for group in groups if _alike(group[0], each)), None)
        if alike is None:
            groups.append([each])
        else:
            alike.append(each)
    return min(groups, key=len)[0]


def _alike(left: object, right: object) -> bool:
    """Whether two results are the same in every bit, as far as that can be told."""
    if not (isinstance(left, _Tensor) and isinstance(right, _Tensor)):
        return left is right
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    try:
        return _equal(_bits(left), _bits(right))
    except (TypeError, KeyError):
        return False


def _bits(result: object) -> torch.Tensor:
    """A result's elements as integers.

    Raises:
        TypeError: it is no plain tensor.
        KeyError: no integer is as large as its elements.
    """
    if not isinstance(result, _Tensor) or result.layout is not _strided:
        raise TypeError("no plain tensor")
    return _view_dtype(_detach(result), BITS[result.element_size()])


class Captured:
    """A call in a CUDA graph, and its result, which every replay writes anew."""

    def __init__(self, model: Model, given: torch.Tensor) -> None:
        """Call the model once, then capture a call, on a stream of their own as `torch.cuda.graph` does."""
        stream = _Stream(given.device)
        _synchronize(given.device)
        self._graph = _CudaGraph()
        with _on_stream(stream):
            model(given)  # what is built, loaded or allocated at a first call is no part of a graph
            _synchronize(given.device)
            self._graph.capture_begin()
            try:
                self._result = model(given)
            except BaseException:
                with contextlib.suppress(RuntimeError):  # what the model raised says more
                    self._graph.capture_end()
                raise
            self._graph.capture_end()
        self._device = given.device

    def replay(self) -> object:
        """The result after a replay; what it held before is overwritten with the byte of fresh memory."""
        with contextlib.suppress(TypeError, KeyError), _no_grad():
            bits = _bits(self._result)
            _fill(bits, int.from_bytes(FRESH_BYTE.to_bytes(1, "little") * bits.element_size(), "little"))
        self._graph.replay()
        _synchronize(self._device)
        return self._result


def often(model: Model, given: torch.Tensor) -> tuple[object, int]:
    """Call the model `CALLS_IN_A_ROW` times on one input, or for as long as `SECONDS_IN_A_ROW` last.

    Returns:
        The first result whose bits are not those of the first, or the last; and how many calls were made.
    """
    began, done = _now(), 1
    last = first = model(given)
    odd: list[object] = []
    together = max(1, _TOGETHER_BYTES[given.device.type] // max(1, given.numel() * given.element_size()))
    while done < CALLS_IN_A_ROW and _now() - began < SECONDS_IN_A_ROW:
        # No more than were made before, so that a slow one is not called for much longer than it may.
        found = [model(given) for _ in range(min(done, together, CALLS_IN_A_ROW - done))]
        done, last = done + len(found), found[-1]
        odd = odd or _unlike(first, found)
    return (odd or [last])[0], done


def _unlike(first: object, found: list[object]) -> list[object]:
    """Of results, the first that has other bits, where one has."""
    try:
        bits = _stack([_bits(each) for each in (first, *found)])
        differs = _any(_ne(bits[1:], bits[0]).flatten(1), 1)
    except (RuntimeError, TypeError, KeyError):  # of several shapes, types or devices, or no tensors
        return [each for each in found if not _alike(first, each)][:1]
    return [each for each, other in zip(found, differs.tolist(), strict=True) if other][:1]


def compiled(model: Model) -> Model:
    """`torch.compile` around the model, traced, made functional, and run operation by operation.

    The backend ``aot_eager`` does all that depends on the model (tracing, shapes from fake tensors, what is mutated and
    what is an alias) and leaves out the code that inductor would generate, which is torch's own and takes a compiler
    seconds a shape.
    """
    forget_compiled()
    wrapped: Model = _compile(model, backend="aot_eager", dynamic=False)
    return wrapped


def forget_compiled() -> None:
    """Drop all that dynamo compiled: it stops compiling after eight shapes and runs eager without a word.

    Imported here: the import takes seconds, and only what is compiled needs it.
    """
    import torch._dynamo

    torch._dynamo.reset()


class Busy:
    """Other work on a GPU, on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        """Make the stream and what is worked on."""
        self._stream = _Stream(device)
        self._room = _zeros(_BUSY_ELEMENTS, device=device)

    def start(self) -> None:
        """Queue two milliseconds of it; nobody waits for its end."""
        with _on_stream(self._stream):
            for _ in range(_BUSY_TIMES):
                _add(self._room, 1.0)
