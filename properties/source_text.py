"""What the text of a candidate's file says, read as Python reads it and never run.

Promise: no file makes these functions raise. Of what does not parse nothing is known, and it is never a helper.
"""

from __future__ import annotations

import ast
import itertools
import symtable
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

#: The names under which a candidate, or a problem's own file, defines what is judged.
MODELS = frozenset({"Model", "ModelNew"})


def parsed(path: Path) -> ast.Module | None:
    """The file's syntax tree; None where it cannot be read or does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the file is warned of is told where it is run
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def helpers(files: Sequence[Path]) -> list[Path]:
    """Those files of a folder that another one imports and that have no model: modules, and no candidates."""
    imported = {path: _imported(path) for path in files}
    return [
        path
        for path in files
        if any(path.stem in names for each, names in imported.items() if each != path) and not _may_hold_model(path)
    ]


def _imported(path: Path) -> set[str]:
    """Names of modules beside a file that it imports, wherever it does so; modules elsewhere may be among them."""
    tree = parsed(path)
    return {name for node in ast.walk(tree or ast.Module([], [])) for name in _beside(node, path.parent.name)}


def _beside(node: ast.AST, folder: str) -> Iterator[str]:
    """What an import names of its file's folder: ``helper``, ``.helper``, and ``anything.folder.helper``."""
    if isinstance(node, ast.Import):
        dotted, level = [each.name for each in node.names], 0
    elif isinstance(node, ast.ImportFrom):
        start = f"{node.module}." if node.module else ""
        dotted, level = [start + each.name for each in node.names], node.level
    else:
        return
    for name in dotted:
        parts = name.split(".")
        if level <= 1:
            yield parts[0]
        if level != 1:
            yield from (behind for before, behind in itertools.pairwise(parts) if before == folder)


def _may_hold_model(path: Path) -> bool:
    """Whether a file binds the name of a model at its top level, or takes over names that it does not tell."""
    tree = parsed(path)
    if tree is None or any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(ast.unparse(tree), str(path), "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    bound = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    return bool(bound & MODELS)
