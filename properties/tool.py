"""Which kernelproof has judged: its version, and the commit of its checkout, as a report or a record names them."""

from __future__ import annotations

import tomllib
from functools import cache

from ci.gate_base import NoBaseError, Repository

from .options import ROOT

_FACTS = ROOT / "pyproject.toml"


@cache
def version() -> str:
    """As `pyproject.toml` has it."""
    with _FACTS.open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


@cache
def commit() -> str:
    """Of the checkout: 40 digits, with "+" behind where files differ; "" where it is no repository of its own."""
    try:
        found = Repository(_FACTS)
        return found.present().commit if found.root == ROOT else ""
    except (NoBaseError, ValueError):
        return ""


def record() -> dict[str, str]:
    """All of it, as it stands in a report."""
    return {"name": "kernelproof", "version": version(), "commit": commit()}
