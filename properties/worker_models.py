"""The candidate in its worker: its module is imported, and its model made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from . import protocol
from .candidate_loading import CandidateError, find_model, load_module, make_model, taken
from .protocol import Message
from .worker_output import describe_error

Model = Callable[..., object]


class Models:
    """What a worker calls.

    Attributes:
        path: the candidate's file; "" before `load`.
    """

    def __init__(self) -> None:
        self.path = ""
        self._first: Model | None = None

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
        try:
            model = make_model(module, name, request["init"])
            self._first = model.to(request["device"]) if isinstance(model, torch.nn.Module) else model
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            return self._raised("init", error)
        return {"outcome": "loaded", "model": name}

    def _raised(self, stage: str, error: BaseException) -> Message:
        return {"outcome": "raised", "stage": stage, "error": protocol.to_message(describe_error(error, self.path))}
