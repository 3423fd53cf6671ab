"""Load a candidate file inside a worker: never imported by the judging process.

A file is loaded under its own name where Python finds it, and nothing else, under that: a process that it spawns then
finds its functions. Else it has a module name of our own, so that two candidates never meet under one name and a file
name that is no identifier still loads. The format is KernelBench's: ``ModelNew``, in a problem's own file ``Model``,
and ``get_init_inputs`` for what its ``__init__`` takes. A file that belongs to a package (``__init__.py`` beside it) is
loaded as a member of that package under an alias, so that its relative imports work and another copy of the package may
be loaded beside it.

Otherwise a candidate finds what it would find if its author ran it: it is in its own folder, its modules and data lie
beside it, there are no arguments on the command line, and no module of this project stands before one of its own.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parent.parent
#: What is expected of a file that has nothing which could be meant.
_FORMAT = "a candidate is a file with a class {}(torch.nn.Module) whose forward(self, x) returns the result"
#: Where a text may name its own file's module: as a word of its own, or to import it.
_NAMED = rb"['\"]%b['\"]|import\b.*\b%b\b|from\s+%b\b"
#: Whether this process is there for candidates alone; one that is somebody else's keeps its folder and its arguments.
_alone = False


class CandidateError(Exception):
    """The candidate cannot be used at all.

    Attributes:
        stage: ``parse``, ``import``, ``missing`` (no ModelNew) or ``init``.
    """

    def __init__(self, stage: str, text: str) -> None:
        super().__init__(text)
        self.stage = stage


def be_alone() -> None:
    """This process is there for one candidate: it gets its own folder, and arguments, as where its author runs it."""
    global _alone
    _alone = True


def step_aside() -> None:
    """Take this project's modules out of the way of a candidate's own: ``properties``, ``kernels``, ``reference``...

    For a process that is there for candidates alone and has imported all that it needs of them. They can still be
    imported, after everything else.
    """
    be_alone()
    for name in [each for each in sys.modules if "." not in each]:
        found = Path(getattr(sys.modules[name], "__file__", None) or os.devnull)
        if name != "__main__" and _ROOT in (found.parent, found.parent.parent):
            for each in [each for each in sys.modules if each.partition(".")[0] == name]:
                del sys.modules[each]
    # A process that a candidate spawns would run this one's program first, under a name that is no candidate's.
    main = sys.modules["__main__"]
    main.__spec__ = None
    vars(main).pop("__file__", None)
    own = str(_ROOT)
    sys.path[:] = [*(each for each in sys.path if each != own), own]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(each for each in given if each != own)


def module_name(path: Path, tag: str) -> str:
    """A module name made of the file's name, sanitised, and a tag that sets it apart."""
    return f"candidate_{_identifier(path.stem)}_{tag}"


def load_module(path: Path, tag: str) -> ModuleType:
    """Import the file.

    Raises:
        CandidateError: the file does not parse (an error of its own while importing comes through as it is).
    """
    text = path.read_bytes()
    try:
        compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CandidateError("parse", f"does not parse: {error}") from None
    behind = path.resolve()  # a link's modules may lie beside it, or beside what it leads to
    if not _is_package(path.parent) and _is_package(behind.parent):
        path = behind
    packages = [path.parent, *path.parent.parents]
    packages = packages[: next(place for place, each in enumerate(packages) if not _is_package(each))]
    if _alone:
        sys.argv[:] = [str(path)]
        with contextlib.suppress(OSError):
            os.chdir(path.parent)
    sys.path.insert(0, str(packages[-1].parent if packages else path.parent))
    sys.path += [str(each) for each in dict.fromkeys((path.parent, behind.parent))]
    if not packages:
        own = _alone and _is_alone_under_its_name(path, text)
        return _execute(path.stem if own else module_name(path, tag), path, None)
    name = module_name(packages[-1], tag)
    _execute(name, packages[-1] / "__init__.py", [str(packages[-1])])
    for each in reversed(packages[:-1]):
        name = f"{name}.{_identifier(each.name)}"
        if name not in sys.modules:
            _execute(name, each / "__init__.py", [str(each)])
    name = f"{name}.{_identifier(path.stem)}"
    return sys.modules.get(name) or _execute(name, path, None)


def find_model(module: ModuleType, name: str = "ModelNew") -> Callable[..., object]:
    """What makes the module's model, a class as a rule: ``ModelNew`` in a candidate, ``Model`` in a reference.

    Raises:
        CandidateError: there is none.
    """
    model = getattr(module, name, None)
    if callable(model) and not (callable(getattr(model, "forward", None)) and not isinstance(model, type)):
        made: Callable[..., object] = model
        return made
    if model is not None:
        text = f"its {name} is an instance of {type(model).__name__}, expected the class, or a function that makes one"
        raise CandidateError("missing", text)
    classes = {
        each: value
        for each, value in sorted(vars(module).items())
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    found = f"it defines {', '.join(classes)}" if classes else "it defines no class"
    like_it = any(callable(getattr(value, "forward", None)) for value in classes.values())
    remedy = f"rename the module under test to {name}" if like_it else _FORMAT.format(name)
    raise CandidateError("missing", f"defines no class {name} ({found}); {remedy}")


def make_model(module: ModuleType, name: str, init: Sequence[object]) -> Callable[..., object]:
    """An instance of the module's model class: see `find_model`.

    Args:
        module: the candidate's.
        name: of the class; a module without ``ModelNew`` that has ``Model`` is meant by that.
        init: what its ``__init__`` is given; where that is nothing, what the module's own ``get_init_inputs`` returns:
            a list of arguments, or one of arguments and a dictionary of named ones.

    Raises:
        CandidateError: there is no such class. Whatever its ``__init__`` or ``get_init_inputs`` raises comes through.
    """
    model = find_model(module, taken(module, name))
    own = getattr(module, "get_init_inputs", None)
    arguments = own() if not init and callable(own) else init
    named: dict[str, object] = {}
    if [type(each) for each in arguments] == [list, dict] and not _takes(model, *arguments):
        arguments, named = arguments  # type: ignore[assignment]
    made: Callable[..., object] = model(*arguments, **named)  # type: ignore[assignment]
    return made


def taken(module: ModuleType, name: str) -> str:
    """The name of the class that is meant: ``Model`` where ``ModelNew`` is asked for and only the former is there."""
    alone = isinstance(getattr(module, "Model", None), type) and not hasattr(module, name)
    return "Model" if name == "ModelNew" and alone else name


def _takes(model: Callable[..., object], *arguments: object) -> bool:
    """Whether it has places of its own for these arguments."""
    try:
        signature = inspect.signature(model)
        signature.bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # it does not tell
        return True
    return all(each.kind is not inspect.Parameter.VAR_POSITIONAL for each in signature.parameters.values())


def _is_alone_under_its_name(path: Path, text: bytes) -> bool:
    """Whether Python finds the file under its name, nothing else has that, and nothing in the text may come to have it.

    An extension that is built under the file's name would take its place, and whoever imports himself by name has
    himself a second time.
    """
    name = path.stem
    word = re.escape(name.encode(errors="surrogateescape"))
    if name in sys.modules or "." in name or re.search(_NAMED % ((word,) * 3), text):
        return False
    found = set[Path]()
    for finder in sys.meta_path:
        places = [[each] for each in dict.fromkeys(sys.path)] if finder is importlib.machinery.PathFinder else [None]
        specs = (finder.find_spec(name, place) for place in places)
        found |= {Path(spec.origin or "").resolve() for spec in specs if spec is not None and spec.loader is not None}
    return found == {path.resolve()}


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").exists()


def _identifier(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z_]", "_", text)


def _execute(name: str, path: Path, search: list[str] | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise CandidateError("parse", f"is not a Python file ({path.suffix or 'no suffix'}); a candidate is a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
