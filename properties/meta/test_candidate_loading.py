"""However a right candidate is written, named and laid out, it is found and made; what is none says why."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from .. import inputs
from ..candidate_loading import CandidateError, load_module
from ..cases import parse
from ..runner import Runner
from .conftest import RIGHT, MakeRunner

GIVEN = inputs.build(parse("shape=3x5,seed=1"))
CLASS = f"import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {RIGHT}\n"
USES = (
    "import torch\nfrom {} import right\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return right(x)\n"
)
HELPER = "def right(x):\n    return x / x.abs().mean(1, keepdim=True)\n"


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


def right(runner: Runner) -> bool:
    failure = runner.load()
    assert failure is None, failure
    output = runner.observe(GIVEN).output
    return output is not None and torch.equal(output, GIVEN.logical / GIVEN.logical.abs().mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("name", "files"),
    [
        *((f"mine/{name}", {}) for name in ("my kernel.py", "v1.2-ж.py", "007.py", "class.py", "torch.py", "json.py")),
        ("mine/one.py", {"mine/one.py": USES.format("helper"), "mine/helper.py": HELPER}),
        ("mine/v1.2.py", {"mine/v1.2.py": USES.format(".helper"), "mine/helper.py": HELPER, "mine/__init__.py": ""}),
        ("mine/one.py", {"mine/one.py": USES.format("helper"), "mine/helper.py": HELPER, "mine/__init__.py": ""}),
        *(
            (
                "all/sub/one.py",
                {
                    "all/sub/one.py": USES.format(where),
                    "all/helper.py": HELPER,
                    "all/__init__.py": "",
                    "all/sub/__init__.py": "",
                },
            )
            for where in ("..helper", "all.helper")
        ),
        *(
            (
                "mine/one.py",
                {
                    "mine/one.py": USES.format(f"{name}.helper"),
                    f"mine/{name}/helper.py": HELPER,
                    f"mine/{name}/__init__.py": "",
                },
            )
            for name in ("properties", "kernels", "reference", "ci")
        ),
        ("mine/one.py", {"mine/one.py": f"open('data.txt').close()\n{CLASS}", "mine/data.txt": ""}),
        ("mine/one.py", {"mine/one.py": f"import argparse\nargparse.ArgumentParser().parse_args()\n{CLASS}"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_a_candidate_is_loaded_as_its_author_runs_it(
    name: str, files: dict[str, str], make_runner: MakeRunner, tmp_path: Path
) -> None:
    written(tmp_path, {name: CLASS, **files})
    runner = make_runner(RIGHT)
    runner.candidate = tmp_path / name
    assert right(runner)


@pytest.mark.parametrize(
    ("name", "own", "head"),
    [
        ("one.py", True, ""),
        ("my kernel.py", True, ""),
        ("json.py", False, ""),
        ("wave.py", False, ""),
        ("conftest.py", False, ""),
        ("v1.2.py", False, ""),
        ("one.py", False, "EXTENSION = 'one'\n"),
        ("one.py", False, "try:\n    import os, one\nexcept AssertionError:\n    pass\n"),
        ("one.py", False, "try:\n    from one import __name__ as again\nexcept AssertionError:\n    pass\n"),
        ("one.py", True, "import lone as one_more\n"),
    ],
)
def test_a_file_has_its_own_name_where_nothing_else_has_it(
    name: str, own: bool, head: str, make_runner: MakeRunner, tmp_path: Path
) -> None:
    check = f"assert {'not ' if own else ''}__name__.startswith('candidate_'), __name__\n"
    written(tmp_path, {f"mine/{name}": f"{head}{check}{CLASS}", "mine/lone.py": ""})
    runner = make_runner(RIGHT)
    runner.candidate = tmp_path / "mine" / name
    assert right(runner)


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
@pytest.mark.parametrize("beside", [{}, {"mine/properties/__init__.py": ""}], ids=["alone", "beside our name"])
def test_a_process_that_it_starts_anew_finds_its_functions(
    start: str, beside: dict[str, str], make_runner: MakeRunner, tmp_path: Path
) -> None:
    text = f"""
        import multiprocessing, torch
        def negated(size): return -size
        class ModelNew(torch.nn.Module):
            def forward(self, x):
                with multiprocessing.get_context({start!r}).Pool(1) as pool:
                    assert pool.map(negated, [3]) == [-3]
                {RIGHT}
    """
    written(tmp_path, {"mine/one.py": text, **beside})
    runner = make_runner(RIGHT)
    runner.candidate = tmp_path / "mine" / "one.py"
    assert right(runner)


def test_a_link_finds_what_lies_beside_it_and_beside_what_it_leads_to(make_runner: MakeRunner, tmp_path: Path) -> None:
    written(tmp_path, {"store/0a1b": CLASS, "far/real.py": USES.format("helper"), "far/helper.py": HELPER})
    written(tmp_path, {"package/__init__.py": "", "package/in.py": USES.format(".helper"), "package/helper.py": HELPER})
    written(tmp_path, {"far/bare.py": USES.format("near_helper"), "near_helper.py": HELPER})
    for leads_to in ("store/0a1b", "far/real.py", "package/in.py", "far/bare.py"):
        link = tmp_path / f"{Path(leads_to).stem}_link.py"
        link.symlink_to(leads_to)
        runner = make_runner(RIGHT)
        runner.candidate = link
        assert right(runner)


@pytest.mark.parametrize(
    "text",
    [
        "import functools\nclass Net:\n    def __init__(self, dim): self.dim = dim\n"
        "    def __call__(self, x): return x / x.abs().mean(self.dim, keepdim=True)\n"
        "ModelNew = functools.partial(Net, dim=1)\n",
        "def ModelNew():\n    return lambda x: x / x.abs().mean(1, keepdim=True)\n",
        f"{CLASS}def get_init_inputs(): return [[], {{}}]\n",
        f"{CLASS}    def __init__(self, *, dim=7):\n        super().__init__()\n        assert dim == 1\n"
        "def get_init_inputs(): return [[], {'dim': 1}]\n",
        f"{CLASS}    def __init__(self, a, b):\n        super().__init__()\n        assert (a, b) == ([], {{}})\n"
        "def get_init_inputs(): return [[], {}]\n",
    ],
    ids=["partial", "function", "no arguments", "named arguments", "a list and a dictionary"],
)
def test_what_makes_a_model_may_be_a_class_or_not(text: str, make_runner: MakeRunner) -> None:
    runner = make_runner(RIGHT)
    runner.candidate.write_text(text, encoding="utf-8")
    assert right(runner)


def test_an_instance_is_told_from_a_class(make_runner: MakeRunner) -> None:
    runner = make_runner(RIGHT)
    runner.candidate.write_text(f"{CLASS}ModelNew = ModelNew()\n", encoding="utf-8")
    failure = runner.load()
    assert failure is not None
    assert failure.text == "its ModelNew is an instance of ModelNew, expected the class, or a function that makes one"


def test_what_does_not_parse_names_its_line_once(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef f(:\n", encoding="utf-8")
    with pytest.raises(CandidateError, match=r"^does not parse: .* \(broken\.py, line 2\)$"):
        load_module(path, "tag")


def test_a_file_is_parsed_as_it_is_written_whatever_this_project_imports_from_the_future(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text("def forward(x: (T := int)) -> T: return x\n", encoding="utf-8")
    assert load_module(path, "tag").T is int
