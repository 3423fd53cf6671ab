"""The nursery: one process with torch imported, from which workers are forked in milliseconds.

    python -m properties.nursery CONTROL_FD

Importing torch takes seconds; a worker that died, or a case that is to meet a fresh process, must not wait for it. The
nursery has a single thread, touches neither CUDA nor a candidate, and speaks with the judging process alone: it forks,
and it tells how a child ended. A child closes the control socket before it runs anything, leads a session of its own,
and shares nothing that can be written with its siblings.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback

from . import worker

#: Most file descriptors of one request: pipes, log, and slots.
_MOST_FDS = 16
#: Seconds between two looks at a child that is about to end.
_POLL = 0.002


def serve(control: socket.socket) -> None:
    """Answer requests until the judging process goes away."""
    while True:
        text, fds, _, _ = socket.recv_fds(control, 1 << 16, _MOST_FDS)
        if not text:
            return
        request = json.loads(text)
        if "wait" in request:
            reply = {"status": _wait(request["wait"], request["seconds"])}
        else:
            reply = {"pid": _fork(control, request, fds)}
        for fd in fds:
            os.close(fd)
        control.sendall(json.dumps(reply).encode())


def _fork(control: socket.socket, request: dict[str, dict[str, str]], fds: list[int]) -> int:
    """Fork a worker that serves the given pipes; returns its process number."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        control.close()
        os.setsid()
        requests, replies, log, *slots = fds
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        os.environ.update(request["environment"])
        worker.serve(requests, replies, slots)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the log is where the judging process reads it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(pid: int, seconds: float) -> int | None:
    """The child's exit status as `os.waitstatus_to_exitcode` gives it; None if it still lives or was told before."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(_POLL)


if __name__ == "__main__":
    # numpy's BLAS made its threads when it was imported, or none (`process.Nursery` asks for none): forking is safe.
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    serve(socket.socket(fileno=int(sys.argv[1])))
