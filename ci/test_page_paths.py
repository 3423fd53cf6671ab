"""Paths in a page: those of its maker become relative, everything else stays."""

from pathlib import Path

import pytest

from ci.page_paths import portable

HOME, CHECKOUT = Path("/home/me"), Path("/home/me/repo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'/home/me/repo/ci/verify' --candidate=/home/me/k.py", "'ci/verify' --candidate=~/k.py"),
        ("g++ -I/home/me/inc -L/home/me/repo/lib", "g++ -I~/inc -Llib"),
        ("file:///home/me/x.html", "~/x.html"),
        ("in /home/me, or /home/me.", "in ~, or ~."),
        ("/home/me/repo", "."),
        ("/home/me-old/x /home/mexico a/home/me/x http://h/home/me/y", None),
        ("/home/me.old/x", None),
    ],
)
def test_the_makers_folders_are_named_from_inside(text: str, expected: str | None) -> None:
    assert portable(text, [CHECKOUT], HOME) == (text if expected is None else expected)
