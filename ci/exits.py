"""The exit codes of the `ci/` commands and the one way to stop with one of them.

Promise: a command ends with one of these numbers and nothing else; pytest's own codes never pass through.
64, 69, 70 and 75 are EX_USAGE, EX_UNAVAILABLE, EX_SOFTWARE and EX_TEMPFAIL of BSD's sysexits.h; 130 and 143 are what a
shell reports for a process ended by an interrupt from the keyboard (128 + SIGINT) and by SIGTERM (128 + 15).
"""

OK = 0
REJECTED = 1
USAGE = 64
UNAVAILABLE = 69
INTERNAL = 70
TRY_AGAIN = 75
INTERRUPTED = 130
TERMINATED = 143
# Environment variable of a pytest that one of the commands has started: the number of that command's process.
STARTED_BY = "KERNELPROOF_STARTED_BY"
# And the Python that a replay has to name; not set where it has to name none.
NAMED_PYTHON = "KERNELPROOF_NAMED_PYTHON"


class Terminated(KeyboardInterrupt):
    """The command was sent SIGTERM: an interrupt that nobody has sent to what it started."""


class Stop(Exception):  # noqa: N818 - it ends a command in good order; not each one is an error
    """Ends a command with one line on stderr and an exit code.

    Args:
        code: One of the codes above.
        line: What was wrong, what was expected and what to do next, in one line.
    """

    def __init__(self, code: int, line: str) -> None:
        super().__init__(line)
        self.code = code
        self.line = line
