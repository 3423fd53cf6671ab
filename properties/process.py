"""Worker processes: fork one from the nursery, ask it with a time limit, kill it with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import busy
from .observation import Death
from .protocol import Message, printable
from .worker import Session

ROOT = Path(__file__).resolve().parent.parent
#: Longest reply, in bytes: a worker that writes more without a line's end has lost its mind.
_LONGEST_REPLY = 1 << 20
#: Seconds that a process which closed its pipe has to end by itself.
_DEATH_SECONDS = 5.0
#: Seconds within which a nursery that lives answers, however busy the machine: one that has ended closes its socket,
#: which is known at once.
_ANSWER_SECONDS = 60.0
#: Seconds between two looks at whether a compiler is still at work, or a silent nursery was stopped.
_LOOK_AGAIN = 5.0
#: Our own modules that have frames where a candidate is loaded, called or timed.
_OURS = r"properties/(worker(_\w+)?|nursery|candidate_loading|stopwatch)\.py"
#: What Python's fault handler prints of our own frames and torch's: it would push out what the candidate said.
_NOT_TELLING = re.compile(rf'^Extension modules:|^  File "[^"]*(site-packages|{_OURS}|<frozen)')
#: Bytes of a worker's own output that are kept from one call to the next.
_LARGEST_LOG = 1 << 20
#: How names of variables begin that tell a test run.
_TELLING = ("PYTEST", "HYPOTHESIS", "COV_", "PY_COLORS")
#: Where the system lists what a process has.
_FOLDERS = {"open files": "fd", "threads": "task"}
#: Lines of a dead worker's own output that a report shows.
_LOG_LINES = 12
#: glibc fills fresh memory with the complement of this byte (0x7F) and freed memory with the byte itself, so elements
#: that a candidate never wrote are told from computed ones (`judge.UNWRITTEN_BYTES`).
PERTURB = 0x80


class WorkerDiedError(Exception):
    """The worker ended, or was killed because its time was up.

    Attributes:
        death: how.
        timed_out: whether it was killed for its silence.
    """

    def __init__(self, death: Death, timed_out: bool) -> None:
        super().__init__(death.cause)
        self.death = death
        self.timed_out = timed_out


def callers_environment() -> dict[str, str]:
    """The caller's variables, less what tells a test run, with this Python's programs on PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_TELLING)}
    # ninja is a script of the environment: it is not on PATH when the environment is not activated.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    return environment


def cause_of(status: int) -> str:
    """How a process has ended, in words, by its exit status (negative: by that signal; real-time ones have no name)."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def nursery_environment(perturb: bool = True) -> dict[str, str]:
    """The environment of the nursery and its workers: the caller's, less what tells a test run, plus what is needed.

    Args:
        perturb: whether fresh memory is filled (`PERTURB`): not where times are taken, since filling counts as work.
    """
    environment = callers_environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [environment.get("PYTHONPATH")])])
    environment.pop("MALLOC_PERTURB_", None)
    if perturb:
        environment["MALLOC_PERTURB_"] = str(PERTURB)
    environment["PYTHONFAULTHANDLER"] = "1"
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    return environment


class Nursery:
    """Where workers come from: see `properties.nursery`. Started when first used, again if it died."""

    def __init__(self, perturb: bool = True) -> None:
        self._perturb = perturb
        self.scratch = Path(tempfile.mkdtemp(prefix="kernelproof-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, fds: list[int], environment: dict[str, str], timeout: float) -> int:
        """Fork a worker; returns its process number.

        Args:
            fds: its pipes for requests and replies, its log, and its slots.
            environment: variables to set in it.
            timeout: seconds to wait where the nursery has to import torch first.

        Raises:
            WorkerDiedError: no worker could be made.
        """
        for attempt in ("first", "again"):
            control = self._started()
            try:
                control.settimeout(timeout)
                socket.send_fds(control, [json.dumps({"environment": environment}).encode()], fds)
                reply = control.recv(1 << 16)
            except TimeoutError:
                self.close_process()
                raise WorkerDiedError(Death(f"no answer within {timeout:g} s", "start"), True) from None
            except OSError:
                reply = b""
            if reply:
                return int(json.loads(reply)["pid"])
            self.close_process()
            if attempt == "again":
                break
        raise WorkerDiedError(Death("the process that makes workers ends as soon as it starts", "start"), False)

    def wait(self, pid: int, seconds: float) -> int | None:
        """How a worker ended (negative: by that signal), or None if that is not known within ``seconds``."""
        if self._control is None:
            return None
        try:
            self._control.settimeout(seconds + 30)
            self._control.sendall(json.dumps({"wait": pid, "seconds": seconds}).encode())
            status = json.loads(self._control.recv(1 << 16) or b"{}").get("status")
        except TimeoutError:
            self.close_process()  # its late answer would be taken for that to the next request
            return None
        except (OSError, ValueError):
            return None
        return status if isinstance(status, int) else None

    @property
    def running(self) -> bool:
        """Whether the nursery was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def answers(self) -> bool:
        """Whether the nursery still answers: one that was killed never does, though it may take a while to end.

        One that was stopped is not waited for: a busy machine stops nobody.
        """
        if self._control is None or self._process is None:
            return False
        try:
            until = time.monotonic() + _ANSWER_SECONDS
            self._control.settimeout(min(_LOOK_AGAIN, _ANSWER_SECONDS))
            self._control.sendall(json.dumps({"ping": True}).encode())
            while True:
                with contextlib.suppress(TimeoutError):
                    return bool(self._control.recv(1 << 16))
                if busy.stopped(self._process.pid) or time.monotonic() >= until:
                    self.close_process()  # as in `wait`
                    return False
        except OSError:
            return False

    def close_process(self) -> None:
        """End the nursery; living workers are not touched."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._control is not None:
            self._control.close()
        self._process = self._control = None

    def close(self) -> None:
        """End the nursery and remove its folder."""
        self.close_process()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, other = socket.socketpair()
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "properties.nursery", str(other.fileno())],
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    cwd=self.scratch,
                    env=nursery_environment(self._perturb),
                    start_new_session=True,
                )
        return self._control


def _watch(pid: int) -> int | None:
    """A descriptor that is readable once the process has ended; None where the system has none."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


class WorkerProcess:
    """A child that serves `properties.worker`.

    The child has a session of its own: whatever it starts is killed with it.
    """

    def __init__(self, nursery: Nursery, slot_fds: list[int], environment: dict[str, str], timeout: float) -> None:
        self._nursery = nursery
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker, see `close`
        self._buffer = b""
        self._ended = False
        try:
            self._pid = nursery.fork([request_end, reply_end, self._log.fileno(), *slot_fds], environment, timeout)
        except WorkerDiedError:
            for fd in (self._requests, self._replies):
                os.close(fd)
            self._log.close()
            raise
        finally:
            os.close(request_end)
            os.close(reply_end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._replies, selectors.EVENT_READ)
        # What the worker started may hold its pipe open: its death is watched beside the pipe, where the system can.
        self._death = _watch(self._pid)
        if self._death is not None:
            self._selector.register(self._death, selectors.EVENT_READ)
        self._asked = 0

    def ask(self, request: Message, timeout: float, during: str, patience: float = 0.0) -> Message:
        """Send a request and wait for the reply.

        Args:
            request: what to do.
            timeout: seconds to wait.
            during: what a report calls this step.
            patience: seconds to wait while programs that the worker has started (compilers) are at work.

        Raises:
            WorkerDiedError: the worker ended, fell silent, or wrote something that is no reply.
        """
        self._asked += 1
        had_parent = self._nursery.running
        if os.fstat(self._log.fileno()).st_size > _LARGEST_LOG:
            os.ftruncate(self._log.fileno(), 0)  # what is printed next follows a hole, which takes no room
        line = (json.dumps({**request, "number": self._asked}) + "\n").encode()
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._requests, line) :]
        began = time.monotonic()
        deadline = began + timeout
        work = 0
        while b"\n" not in self._buffer:
            ready = {key.fd for key, _ in self._selector.select(max(deadline - time.monotonic(), 0))}
            if not ready:
                done, waited = busy.helpers_work(self._pid), time.monotonic() - began
                if done > work and waited < patience:
                    work, deadline = done, time.monotonic() + min(_LOOK_AGAIN, patience - waited)
                    continue
                self.kill()
                raise WorkerDiedError(Death(f"no answer within {waited:.0f} s", during, self._last_lines()), True)
            part = os.read(self._replies, 1 << 16) if self._replies in ready else b""
            if not part:
                raise WorkerDiedError(self._post_mortem(during), False)
            self._buffer += part
            if len(self._buffer) > _LONGEST_REPLY:
                self.kill()
                raise garbage(during, self._last_lines())
        reply, self._buffer = self._buffer.split(b"\n", 1)
        try:
            message = json.loads(reply)
        except (ValueError, RecursionError):  # the latter of lists in lists in lists
            message = None
        good = isinstance(message, dict) and isinstance(message.get("outcome"), str) and not self._buffer
        if not good or message.get("number") != self._asked:
            self.kill()
            raise garbage(during, self._last_lines())
        if had_parent and not self._nursery.answers():
            self.kill()
            raise WorkerDiedError(Death("ended the process that had started it", during, self._last_lines()), False)
        return dict(message)

    def resident_bytes(self) -> int | None:
        """Anonymous memory that the worker has; None where the system does not say (not Linux), or it has ended."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        return None

    def holdings(self) -> dict[str, int]:
        """What else the worker has that a system has only so many of; empty where that is not told, or it has ended."""
        with contextlib.suppress(OSError):
            own = Path(f"/proc/{self._pid}")
            found = {name: len(list((own / folder).iterdir())) for name, folder in _FOLDERS.items()}
            # Those that have ended are among them, as long as nobody asks how; not every kernel tells.
            children = [each.read_text() for each in own.glob("task/*/children")]
            return found | ({"child processes": len(" ".join(children).split())} if children else {})
        return {}

    def kill(self) -> None:
        """End the worker and all that it started."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        self._nursery.wait(self._pid, _DEATH_SECONDS)

    def close(self) -> None:
        """End the worker and give its pipes and log back; once is enough."""
        if self._log.closed:
            return
        self.kill()
        self._selector.close()
        for fd in (self._requests, self._replies, self._death):
            if fd is not None:
                os.close(fd)
        self._log.close()

    def _post_mortem(self, during: str) -> Death:
        status = self._nursery.wait(self._pid, _DEATH_SECONDS)
        self.kill()
        if status is None:
            return Death("closed its pipe", during, self._last_lines())
        return Death(cause_of(status), during, self._last_lines())

    def _last_lines(self) -> tuple[str, ...]:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - 8192, 0))
        lines = map(printable, self._log.read().decode(errors="replace").splitlines())
        return tuple(line for line in lines if line.strip() and not _NOT_TELLING.search(line))[-_LOG_LINES:]


class WorkerInside:
    """The worker's session inside this process: for a debugger. It survives nothing and isolates nothing."""

    def __init__(self, slot_fds: list[int]) -> None:
        self._session = Session(slot_fds)

    def ask(
        self,
        request: Message,
        timeout: float,  # noqa: ARG002
        during: str,  # noqa: ARG002
        patience: float = 0.0,  # noqa: ARG002
    ) -> Message:
        """Do it here and now, however long it takes."""
        return self._session.handle(request)

    def resident_bytes(self) -> int | None:
        """Not told: the process is not the candidate's alone."""
        return None

    def holdings(self) -> dict[str, int]:
        """As above."""
        return {}

    def close(self) -> None:
        """Nothing to end."""


def garbage(during: str, log: tuple[str, ...] = ()) -> WorkerDiedError:
    """Of a worker whose reply has not the form of one: it is taken for its end.

    Args:
        during: what it was asked for.
        log: the last lines that it printed.
    """
    return WorkerDiedError(Death("wrote garbage where its reply belongs", during, log), False)
