#!/bin/sh
# Finds a Python that fits and hands over to ci/start.py: start.sh COMMAND [ARGUMENT...]
# $PYTHON decides where it is set; else the first of the list below that is 3.11, 3.12 or 3.13.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 70
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'

if [ -n "${PYTHON:-}" ]; then
    if ! command -v "$PYTHON" >/dev/null 2>&1; then
        echo "kernelproof: PYTHON=$PYTHON is no program that can be run; name a Python 3.11, 3.12 or 3.13" >&2
        exit 64
    fi
    if ! "$PYTHON" -c "$fits" >/dev/null 2>&1 </dev/null; then
        echo "kernelproof: PYTHON=$PYTHON is not Python 3.11, 3.12 or 3.13; name one that is" >&2
        exit 64
    fi
    exec "$PYTHON" "$here/start.py" "$@"
fi
for python in python3 python python3.13 python3.12 python3.11; do
    if "$python" -c "$fits" >/dev/null 2>&1 </dev/null; then
        exec "$python" "$here/start.py" "$@"
    fi
done
echo "kernelproof: needs Python 3.11, 3.12 or 3.13 and found none on PATH; install one, or name it: PYTHON=/path/to/python3.12" >&2
exit 69
