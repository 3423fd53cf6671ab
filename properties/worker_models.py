"""The candidate in its worker: its module is imported, its model made, and made again.

What is called by itself after the candidate was imported is bound before, as in the worker.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path

import torch

from . import protocol
from .candidate_loading import CandidateError, find_model, load_module, make_model, taken
from .protocol import Message
from .worker_output import describe_error

Model = Callable[..., object]

_deep_copy = copy.deepcopy
_BytesIO, _save, _load = io.BytesIO, torch.save, torch.load
_Module = torch.nn.Module
_state, _load_state, _to = torch.nn.Module.state_dict, torch.nn.Module.load_state_dict, torch.nn.Module.to


def _copied(first: Model) -> Model:
    """A copy of the first, which is to be another.

    Raises:
        TypeError: it is the first itself: what is done to one is done to both.
    """
    copied = _deep_copy(first)
    if copied is first and isinstance(first, _Module):  # of a function there is no other
        raise TypeError("copy.deepcopy gives the model itself, no copy")
    return copied


def _with_state(first: Model, another: Model) -> Model:
    """Another instance with what the first has to keep, as from a file."""
    if isinstance(first, _Module) and isinstance(another, _Module):
        _load_state(another, _state(first))
    return another


def _of_type(another: Model, dtype: torch.dtype) -> Model:
    """Another instance that was turned into a type with the network that it is part of."""
    return _to(another, dtype) if isinstance(another, _Module) else another


def _from_file(first: Model) -> Model:
    """What the first is when it was written as a whole and read again, as where a model is sent to another process."""
    file = _BytesIO()
    _save(first, file)
    file.seek(0)
    read: Model = _load(file, weights_only=False)
    return read


#: How each of `protocol.INSTANCES` is made, of the first, of what makes another, and of the type that it is to have.
MAKERS: dict[str, Callable[[Model, Callable[[], Model], torch.dtype], Model]] = {
    "a second instance": lambda _, make, __: make(),
    "a copy (copy.deepcopy)": lambda first, _, __: _copied(first),
    "an instance with the state of the first (load_state_dict)": lambda first, make, _: _with_state(first, make()),
    "an instance that was turned into the input's type (model.to)": lambda _, make, dtype: _of_type(make(), dtype),
    "an instance that was saved and loaded (torch.save)": lambda first, _, __: _from_file(first),
}


class Models:
    """What a worker calls.

    Attributes:
        path: the candidate's file; "" before `load`.
    """

    def __init__(self) -> None:
        self.path = ""
        self._first: Model | None = None
        self._made: Callable[[], Model] | None = None
        self._others: dict[str, Model] = {}

    @property
    def first(self) -> Model:
        """The model that was made when the candidate was loaded."""
        assert self._first is not None, "load comes first"
        return self._first

    def load(self, request: Message) -> Message:
        """Import the candidate and make its model; the candidate's exceptions become part of the reply."""
        self.path = request["path"]
        try:
            module = load_module(Path(self.path), request["tag"])
            name = taken(module, request["model"])
            find_model(module, name)
        except CandidateError as error:
            return {"outcome": "unusable", "stage": error.stage, "text": str(error)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything, SystemExit too
            return self._raised("import", error)
        self._made = lambda: _on(make_model(module, name, request["init"]), request["device"])
        try:
            self._first = self._made()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return self._raised("init", error)
        return {"outcome": "loaded", "model": name}

    def make(self, instance: str, dtype: torch.dtype) -> Message:
        """Make another instance; an earlier one of that name goes. The candidate's exceptions are part of the reply."""
        assert self._made is not None, "load comes first"
        try:
            self._others[instance] = MAKERS[instance](self.first, self._made, dtype)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return self._raised("make", error)
        return {"outcome": "made"}

    def of(self, instance: str) -> Model:
        """The first model, or that of another name."""
        return self._others[instance] if instance else self.first

    def let_go(self) -> None:
        """Let go of all but the first."""
        self._others.clear()

    def _raised(self, stage: str, error: BaseException) -> Message:
        return {"outcome": "raised", "stage": stage, "error": protocol.to_message(describe_error(error, self.path))}


def _on(model: Model, device: str) -> Model:
    """A model where its inputs are."""
    return _to(model, device) if isinstance(model, _Module) else model
