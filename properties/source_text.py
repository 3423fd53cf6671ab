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
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


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
        if any(path.stem in names for each, names in imported.items() if each != path) and not may_hold_model(path)
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


def may_hold_model(path: Path) -> bool:
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


def code(path: Path) -> str:
    """The file without its comments, its docstrings and other strings that nobody gets; "" where it does not parse."""
    tree = parsed(path)
    try:
        return "" if tree is None else ast.unparse(_WithoutIdleStrings().visit(tree))
    except RecursionError:
        return ""


def words_of(path: Path, line: int) -> str:
    """Names and short strings of the statement at a line, and of what decides whether it is reached.

    That is a ``with`` around it; of a ``raise`` or an ``assert`` every condition around it in its function, what stands
    right before, and what was tried where it handles an exception.
    """
    tree = parsed(path)
    scope: ast.AST | None = tree
    chain = _statements_at(tree, line) if tree else []
    if len(chain) > 1 and isinstance(chain[0], _FUNCTIONS):
        scope, chain = chain[0], chain[1:]
    if not chain:
        return ""
    found = [_head(chain[-1]), *(_head(each) for each in chain if isinstance(each, ast.With | ast.AsyncWith))]
    if isinstance(chain[-1], ast.Raise | ast.Assert):
        for around, each in zip([scope, *chain], chain, strict=False):
            found += [_head(each), *(_head(before) for before in _right_before(around, each))]
            if isinstance(each, ast.Try) and not any(inner in chain for inner in each.body):
                found.append(list(each.body))
    return " ".join(_words(parts) for parts in found)


class _WithoutIdleStrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Leave out a string that is a statement."""
        return None if _is_idle(node) else node


def _is_idle(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _statements_at(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The statements that a line belongs to, the outer ones first, from the innermost function on."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and min(node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ())), node.lineno) <= line
        and line <= (node.end_lineno or node.lineno)
    ]
    functions = (place for place, each in enumerate(found[:-1]) if isinstance(each, _FUNCTIONS))
    return found[max(functions, default=0) :]


def _right_before(around: ast.AST | None, node: ast.stmt) -> list[ast.stmt]:
    """The statement before this one in its block, if there is one."""
    for block in ("body", "orelse", "finalbody"):
        siblings = getattr(around, block, [])
        if node in siblings[1:]:
            return [siblings[siblings.index(node) - 1]]
    return []


def _head(node: ast.stmt) -> list[ast.AST]:
    """The parts of a statement that are run before its blocks, or instead of any."""
    blocks = {"body", "orelse", "finalbody", "handlers", "cases"}
    if _is_idle(node) or isinstance(node, ast.Raise):  # what is raised is told anyway
        return []
    if isinstance(node, ast.Assert):
        return [node.test]
    if not hasattr(node, "body") and not hasattr(node, "cases"):
        return [node]
    parts = [getattr(node, name) for name in node._fields if name not in blocks]
    lists = [part if isinstance(part, list) else [part] for part in parts]
    return [each for part in lists for each in part if isinstance(each, ast.AST)]


def _words(parts: Sequence[ast.AST]) -> str:
    found = []
    for node in (node for part in parts for node in ast.walk(part)):
        for name in ("id", "attr", "arg", "name", "module", "value"):
            word = getattr(node, name, None)
            if isinstance(word, str) and "\n" not in word:
                found.append(word)
    return " ".join(found)
