"""Load a candidate file inside a worker: never imported by the judging process.

A file is loaded under a module name of our own, so that two candidates never meet under one name and a file name that
is no identifier still loads. The format is KernelBench's: ``ModelNew``, in a problem's own file ``Model``, and
``get_init_inputs`` for what its ``__init__`` takes. A file that belongs to a package (``__init__.py`` beside it) is
loaded as a member of that package under an alias, so that its relative imports work and another copy of the package may
be loaded beside it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType


class CandidateError(Exception):
    """The candidate cannot be used at all.

    Attributes:
        stage: ``parse``, ``import``, ``missing`` (no ModelNew) or ``init``.
    """

    def __init__(self, stage: str, text: str) -> None:
        super().__init__(text)
        self.stage = stage


def module_name(path: Path, tag: str) -> str:
    """A module name made of the file's name, sanitised, and a tag that sets it apart."""
    return f"candidate_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{tag}"


def load_module(path: Path, tag: str) -> ModuleType:
    """Import the file.

    Raises:
        CandidateError: the file does not parse (an error of its own while importing comes through as it is).
    """
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise CandidateError("parse", f"does not parse: {error}" + (f" (line {line})" if line else "")) from None
    package = path.parent
    sys.path.insert(0, str(package.parent if (package / "__init__.py").exists() else package))
    if (package / "__init__.py").exists():
        alias = module_name(package, tag)
        _execute(alias, package / "__init__.py", [str(package)])
        return importlib.import_module(f"{alias}.{path.stem}")
    return _execute(module_name(path, tag), path, None)


def find_model(module: ModuleType, name: str = "ModelNew") -> type:
    """The module's model class: ``ModelNew`` in a candidate, ``Model`` in a reference.

    Raises:
        CandidateError: there is none.
    """
    model = getattr(module, name, None)
    if not isinstance(model, type):
        classes = sorted(
            each
            for each, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        )
        found = f"it defines {', '.join(classes)}" if classes else "it defines no class"
        raise CandidateError("missing", f"defines no class {name} ({found}); rename the module under test to {name}")
    return model


def make_model(module: ModuleType, name: str, init: Sequence[object]) -> Callable[..., object]:
    """An instance of the module's model class: see `find_model`.

    Args:
        module: the candidate's.
        name: of the class; a module without ``ModelNew`` that has ``Model`` is meant by that.
        init: what its ``__init__`` is given; where that is nothing, what the module's own ``get_init_inputs`` returns.

    Raises:
        CandidateError: there is no such class. Whatever its ``__init__`` or ``get_init_inputs`` raises comes through.
    """
    model = find_model(module, taken(module, name))
    own = getattr(module, "get_init_inputs", None)
    arguments = own() if not init and callable(own) else init
    made: Callable[..., object] = model(*arguments)
    return made


def taken(module: ModuleType, name: str) -> str:
    """The name of the class that is meant: ``Model`` where ``ModelNew`` is asked for and only the former is there."""
    alone = isinstance(getattr(module, "Model", None), type) and not hasattr(module, name)
    return "Model" if name == "ModelNew" and alone else name


def _execute(name: str, path: Path, search: list[str] | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise CandidateError("parse", f"is not a Python file ({path.suffix or 'no suffix'}); a candidate is a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
