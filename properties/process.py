"""One worker process: start it, ask it one thing with a time limit, kill it with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .observation import Death
from .protocol import Message
from .worker import Session

ROOT = Path(__file__).resolve().parent.parent
#: Longest reply, in bytes: a worker that writes more without a line's end has lost its mind.
_LONGEST_REPLY = 1 << 20
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


def worker_environment(build_dir: Path) -> dict[str, str]:
    """The environment of a worker: the caller's, less what tells a test run apart, plus what a worker needs."""
    hidden = ("PYTEST", "HYPOTHESIS", "COV_", "PY_COLORS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [environment.get("PYTHONPATH")])])
    environment["TORCH_EXTENSIONS_DIR"] = str(build_dir)
    environment["MALLOC_PERTURB_"] = str(PERTURB)
    environment["PYTHONFAULTHANDLER"] = "1"
    # ninja is a script of the environment: it is not on PATH when the environment is not activated.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    return environment


class WorkerProcess:
    """A child that serves `properties.worker`.

    The child has a session of its own: whatever it starts is killed with it.
    """

    def __init__(self, slot_fds: list[int], build_dir: Path, scratch: Path) -> None:
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker, see `close`
        self._buffer = b""
        command = [sys.executable, "-m", "properties.worker", *map(str, [request_end, reply_end, *slot_fds])]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=[request_end, reply_end, *slot_fds],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                cwd=scratch,
                env=worker_environment(build_dir),
                start_new_session=True,
            )
        finally:
            os.close(request_end)
            os.close(reply_end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._replies, selectors.EVENT_READ)

    def ask(self, request: Message, timeout: float, during: str) -> Message:
        """Send a request and wait for the reply.

        Args:
            request: what to do.
            timeout: seconds to wait.
            during: what a report calls this step.

        Raises:
            WorkerDiedError: the worker ended, fell silent, or wrote something that is no reply.
        """
        line = (json.dumps(request) + "\n").encode()
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._requests, line) :]
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not self._selector.select(max(deadline - time.monotonic(), 0)):
                self.kill()
                raise WorkerDiedError(Death(f"no answer within {timeout:g} s", during, self._last_lines()), True)
            part = os.read(self._replies, 1 << 16)
            if not part:
                raise WorkerDiedError(self._post_mortem(during), False)
            self._buffer += part
            if len(self._buffer) > _LONGEST_REPLY:
                self.kill()
                raise WorkerDiedError(Death("wrote garbage where its reply belongs", during, self._last_lines()), False)
        reply, self._buffer = self._buffer.split(b"\n", 1)
        try:
            message = json.loads(reply)
        except ValueError:
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("outcome"), str) or self._buffer:
            self.kill()
            raise WorkerDiedError(Death("wrote garbage where its reply belongs", during, self._last_lines()), False)
        return message

    def kill(self) -> None:
        """End the worker and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the worker and give its pipes and log back."""
        self.kill()
        self._selector.close()
        for fd in (self._requests, self._replies):
            os.close(fd)
        self._log.close()

    def _post_mortem(self, during: str) -> Death:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its pipe and lives on
            self.kill()
            return Death("closed its pipe", during, self._last_lines())
        self.kill()
        cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return Death(cause, during, self._last_lines())

    def _last_lines(self) -> tuple[str, ...]:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - 8192, 0))
        lines = self._log.read().decode(errors="replace").splitlines()
        return tuple(line for line in lines if line.strip())[-_LOG_LINES:]


class WorkerInside:
    """The worker's session inside this process: for a debugger. It survives nothing and isolates nothing."""

    def __init__(self, slot_fds: list[int]) -> None:
        self._session = Session(slot_fds)

    def ask(self, request: Message, timeout: float, during: str) -> Message:  # noqa: ARG002 - as WorkerProcess
        """Do it here and now, however long it takes."""
        return self._session.handle(request)

    def close(self) -> None:
        """Nothing to end."""
