"""Where the shell wrappers enter Python: checks the platform, runs the named command, turns a `Stop` into its line.

Promise: standard library only; one line on stderr and an exit code of `ci.exits` for everything foreseen,
a traceback and 70 for what is not. SIGTERM ends what was started, too.
"""

import signal
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# The interpreter put `ci/` first, where `test.py` and `report.py` would hide modules of other people.
sys.path[0] = str(CHECKOUT)

from ci import exits  # noqa: E402 - importable only after the line above


def platform_problem(platform: str) -> str | None:
    """What is wrong with this platform (a value of `sys.platform`), in one line; None where it is supported."""
    if platform in ("win32", "cygwin", "msys"):
        return "Windows is supported through WSL2 only: run this command in a WSL2 shell (wsl --install brings one)"
    return None


def main(arguments: list[str]) -> int:
    """Run `verify`, `gate`, `test` or `page` with the arguments after it and return its exit code."""
    problem = platform_problem(sys.platform)
    if problem is not None:
        sys.stderr.write(f"kernelproof: {problem}\n")
        return exits.UNAVAILABLE
    from ci import gate, page, test, verify

    commands = {"verify": verify.main, "gate": gate.main, "test": test.main, "page": page.main}
    if not arguments or arguments[0] not in commands:
        sys.stderr.write(f"kernelproof: start.py takes a command first, one of {', '.join(commands)}\n")
        return exits.USAGE
    try:
        return commands[arguments[0]](arguments[1:])
    except exits.Stop as stop:
        sys.stderr.write(f"kernelproof: {stop.line}\n")
        return stop.code
    except exits.Terminated:
        sys.stderr.write("kernelproof: ended by SIGTERM, and what it had started with it\n")
        return exits.TERMINATED
    except KeyboardInterrupt:
        sys.stderr.write("kernelproof: interrupted\n")
        return exits.INTERRUPTED
    except Exception:  # noqa: BLE001 - left uncaught it would exit with 1, which means 'rejected'
        sys.excepthook(*sys.exc_info())
        return exits.INTERNAL


def end_in_good_order(number: int, _: object) -> None:
    """The handler of SIGTERM: ends the command as an interrupt does; the next one ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    raise exits.Terminated


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_in_good_order)
    sys.exit(main(sys.argv[1:]))
