"""A plain program that calls a candidate, as its user's would: it makes the model, calls it, and keeps the results.

    python main.py < JOB

It is copied into a folder of its own and run there, with copies of `candidate_loading` and `parent` beside it: nothing
of this project is imported, stands in a frame or on its command line, or is set in a variable. JOB is JSON: see
`home.run`, which reads what this writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Seconds after which a call is repeated no more.
REPEATED = 5.0
#: Files in its folder: what it calls the candidate on; its process number, once it begins with that; a byte for each
#: step that is done, loading and every call; what came of it.
INPUTS, STARTED, STEPS, RESULTS = "inputs.pt", "started", "steps", "results.pt"


def main(folder: Path, job: dict[str, Any]) -> None:
    """Load the candidate, call it on each input, and write results, or the error, into the folder."""
    import torch

    parts = __import__("loading"), __import__("ending")
    loading, ending = parts
    for part in parts:  # a candidate may have modules of these names beside it
        del sys.modules[part.__name__]
    sys.path.remove(str(folder))
    ending.at_its_end(signal.SIGKILL)
    loading.be_alone()
    device = str(job["device"])
    refused: dict[int, str] = {}
    told: dict[str, object] = {"stage": "load", "error": "", "results": [], "refused": refused}
    results: list[object] = []
    given = torch.load(folder / INPUTS, weights_only=True)
    _write(folder / STARTED, lambda part: part.write_text(str(os.getpid())))
    steps = (folder / STEPS).open("wb", buffering=0)
    try:
        module = loading.load_module(Path(str(job["path"])), str(job["tag"]))
        model = loading.make_model(module, str(job["model"]), job["init"])
        if isinstance(model, torch.nn.Module):
            model = model.to(device)
        told["stage"] = "call"
        steps.write(b".")
        x = torch.empty(0)
        for number, (each, call) in enumerate(zip(given, job["calls"], strict=True)):
            # One tensor that is filled again and again, where it has the shape: as a loader's buffer.
            again = (x.shape, x.dtype, x.stride()) == (each.shape, each.dtype, each.stride())
            x = x.copy_(each) if again else each.to(device)
            evaluated = call["evaluated"] and isinstance(model, torch.nn.Module)
            try:
                if evaluated:
                    model.eval()
                asked = x.clone().requires_grad_() if call["asks"] else x
                result, until = model(asked), time.monotonic() + REPEATED
                for _ in range(call["times"] - 1):
                    if time.monotonic() >= until:
                        break
                    result = model(asked)
                results.append(result)
            except Exception as error:  # noqa: BLE001 - it may refuse a type, and take the next
                results.append(None)
                refused[number] = f"{type(error).__name__}: {error}"
            if evaluated:
                with contextlib.suppress(Exception):
                    model.train()
            steps.write(b".")
        told["results"] = [
            result.detach().cpu() if type(result) is torch.Tensor else type(result).__name__ for result in results
        ]
    except Exception as error:  # noqa: BLE001 - whatever it raises is told, as its user would see it
        told["error"] = f"{type(error).__name__}: {error}"
    _write(folder / RESULTS, lambda part: torch.save(told, part))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file that is there as a whole, or not at all."""
    part = path.with_suffix(".part")
    write(part)
    part.rename(path)


if __name__ == "__main__":
    main(Path(__file__).resolve().parent, json.loads(sys.stdin.read()))
