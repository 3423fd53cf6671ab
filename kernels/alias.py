"""Loads a copy of this package under another name, so that two versions of a kernel can run in one process.

A copy is another checkout's `kernels` folder (the merge base's, for a comparison) or this one once more. It works
because the package imports itself only relatively, finds its sources beside its files, and names extension and operator
namespace after what was compiled: copies with equal sources share one build, others never meet.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_package(folder: Path, alias: str) -> ModuleType:
    """Load the package in `folder` under the name `alias`; its modules are then `alias.l1_norm` and so on.

    Args:
        folder: A `kernels` folder, of any checkout.
        alias: A Python name that no module has yet.

    Returns:
        The package, entered in sys.modules.

    Raises:
        ValueError: `alias` is no Python name, or is taken by something else.
        FileNotFoundError: `folder` holds no package.
    """
    start = folder.resolve() / "__init__.py"
    if not alias.isidentifier():
        raise ValueError(f"the alias {alias!r} is no Python name; expected letters, digits and underscores")
    if not start.is_file():
        raise FileNotFoundError(f"{folder} holds no package: expected the file {start}")
    if (present := sys.modules.get(alias)) is not None:
        if present.__file__ == str(start):
            return present
        raise ValueError(f"the alias {alias!r} is taken by {present.__file__}; choose another")
    spec = importlib.util.spec_from_file_location(alias, start, submodule_search_locations=[str(start.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[alias] = package
    try:
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules[alias]
        raise
    return package


def load_module(folder: Path, alias: str, module: str = "l1_norm") -> ModuleType:
    """Load one module of the package in `folder` under the alias; see `load_package`."""
    load_package(folder, alias)
    return importlib.import_module(f"{alias}.{module}")
