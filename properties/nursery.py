"""The nursery: one process with torch imported, from which workers are forked in milliseconds.

    python -m properties.nursery CONTROL_FD

Importing torch takes seconds; a worker that died, or a case that is to meet a fresh process, must not wait for it. The
nursery has a single thread, touches neither CUDA nor a candidate, and speaks with the judging process alone: it forks,
and it tells how a child ended. A child closes the control socket before it runs anything, leads a session of its own,
and shares nothing that can be written with its siblings. What a worker leaves behind, in whatever session, becomes the
nursery's own child (Linux) and is killed when the worker's end is told. When the judging process ends, in whatever way,
the nursery ends all workers, stopped and hung ones too, and what they have started; where it was stopped itself, it is
woken for that (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

from . import parent, worker
from .candidate_loading import step_aside

#: Most file descriptors of one request: pipes, log, and slots.
_MOST_FDS = 16
#: prctl's number for "orphaned descendants become my children" (linux/prctl.h).
_PR_SET_CHILD_SUBREAPER = 36
#: Seconds to look for orphans, and theirs: a chain that goes on longer forks faster than it is killed, and what a
#: hung GPU holds back ends later, if at all.
_ORPHAN_SECONDS = 1.0
#: Seconds between two looks at a child that is about to end.
_POLL = 0.002


def serve(control: socket.socket) -> None:
    """Answer requests until the judging process goes away; then end all workers."""
    workers: set[int] = set()
    with contextlib.suppress(ConnectionError):  # it went away while an answer was on its way
        _answer(control, workers)
    for pid in workers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    _end_orphans(set())


def _answer(control: socket.socket, workers: set[int]) -> None:
    """Answer requests until the judging process closes its end; ``workers`` are those whose end was not told."""
    while True:
        text, fds, _, _ = socket.recv_fds(control, 1 << 16, _MOST_FDS)
        if not text:
            return
        request = json.loads(text)
        reply: dict[str, int | None]
        if "wait" in request:
            reply = {"status": _wait(request["wait"], request["seconds"])}
            workers.discard(request["wait"])
            _end_orphans(workers)
        elif "ping" in request:
            reply = {}
        else:
            pid = _fork(control, request, fds)
            workers.add(pid)
            reply = {"pid": pid}
        for fd in fds:
            os.close(fd)
        control.sendall(json.dumps(reply).encode())


def _fork(control: socket.socket, request: dict[str, dict[str, str]], fds: list[int]) -> int:
    """Fork a worker that serves the given pipes; returns its process number."""
    pid = os.fork()
    if pid:
        return pid
    status, exits = 1, None
    try:
        control.close()
        os.setsid()
        requests, replies, log, *slots = fds
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        os.environ.update(request["environment"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        step_aside()
        exits = worker.serve(requests, replies, slots)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the log is where the judging process reads it
        traceback.print_exc()
    finally:
        if exits is None:
            sys.stderr.flush()
            os._exit(status)
    raise SystemExit(exits)  # through the frames of `serve`, to where the interpreter ends as that of any program does


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


def _adopt_orphans() -> None:
    """Become the parent of what workers leave behind, where the system can (Linux)."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans(workers: set[int]) -> None:
    """Kill and reap all children that are no workers; theirs become ours then, so look until there is none.

    No single one is waited for: a process that the GPU's driver holds back may never end.
    """
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while orphans := [pid for pid in _children() if pid not in workers]:
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL)


def _children() -> list[int]:
    """Process numbers of this process's children; none where there is no process table to read."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    _adopt_orphans()
    # Of no effect on one that runs: no harm is done where only the thread ends that has started this process.
    parent.at_its_end(signal.SIGCONT)
    # numpy's BLAS made its threads when it was imported, or none (`process.Nursery` asks for none): forking is safe.
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    serve(socket.socket(fileno=int(sys.argv[1])))
