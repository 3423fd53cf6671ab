"""Call a candidate on some cases, one behind the other, with nothing around it: for a tool that watches the process.

    python -m properties.sanitized WHAT CASE...

WHAT is the request to load the candidate, as a worker gets it (`Runner.what`), in JSON.

Each case is announced on a line of its own before the call; the device is waited for behind it, so that what the tool
says of a call stands below its case. Nothing is judged here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from . import inputs
from .candidate_loading import load_module, make_model, step_aside
from .cases import parse
from .protocol import Message

CASE_MARK = "kernelproof case: "
RAISED_MARK = "kernelproof raised: "


def call_all(what: Message, lines: list[str]) -> None:
    """Announce and call; a candidate's exception is announced, too, and the next case follows."""
    device = what["device"]
    step_aside()
    model = make_model(load_module(Path(what["path"]), what["tag"]), what["model"], what["init"])
    model = model.to(device) if isinstance(model, torch.nn.Module) else model
    for line in lines:
        given = inputs.build(parse(line))
        sys.stdout.write(f"\n{CASE_MARK}{line}\n")  # a candidate may have left its last line open
        sys.stdout.flush()
        storage = given.storage.to(device)
        tensor = given.view_of(storage)
        try:
            model(tensor)
            torch.cuda.synchronize(device)
        except Exception as error:  # noqa: BLE001 - a candidate may raise anything
            sys.stdout.write(f"\n{RAISED_MARK}{type(error).__name__}: {error}\n")
            sys.stdout.flush()
        del tensor, storage


if __name__ == "__main__":
    call_all(json.loads(sys.argv[1]), sys.argv[2:])
