"""What is read off the calling interpreter and the machine."""

import sys
from pathlib import Path

import pytest

from ci import facts
from kernels.folder import cache_folder


@pytest.mark.parametrize(
    ("version", "recent"),
    [
        ("2.9.0", True),
        ("2.13.0+cpu", True),
        ("2.9.0a0+50eac811a6.nv25.09", True),
        ("3.0", True),
        ("2.8.1", False),
        ("1.13.1+cu117", False),
        ("unknown", False),
    ],
)
def test_torch_counts_by_its_release_number(version: str, recent: bool) -> None:
    assert facts.torch_is_recent(version) is recent


def test_site_folders_are_what_holds_packages_in_the_order_of_the_search_path(tmp_path: Path) -> None:
    names = ["lib/python", "lib/python/lib-dynload", "lib/python/site-packages", "user", "checkout", "path"]
    standard, dynload, site, user, checkout, pythonpath = (tmp_path / name for name in names)
    for folder in (standard, dynload, site, user, checkout, pythonpath):
        folder.mkdir(parents=True, exist_ok=True)
    search = ["", str(checkout), str(pythonpath), str(tmp_path / "python.zip"), str(standard), str(dynload)]
    search += [str(user), str(site), str(user)]
    found = facts.site_folders(search, [str(standard)], [str(checkout), str(pythonpath)])
    assert found == (str(user), str(site))


def test_pythonpath_is_split_and_its_empty_entries_dropped() -> None:
    assert facts.pythonpath({"PYTHONPATH": "/a::/b"}) == ["/a", "/b"]
    assert facts.pythonpath({}) == []


@pytest.mark.parametrize(
    ("variables", "system", "expected"),
    [
        ({}, "linux", "/home/me/.cache/kernelproof"),
        ({"XDG_CACHE_HOME": "/var/c"}, "linux", "/var/c/kernelproof"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "/home/me/.cache/kernelproof"),
        ({}, "darwin", "/home/me/Library/Caches/kernelproof"),
        ({"KERNELPROOF_CACHE": "/my cache", "XDG_CACHE_HOME": "/var/c"}, "darwin", "/my cache"),
        ({"KERNELPROOF_CACHE": ""}, "linux", "/home/me/.cache/kernelproof"),
    ],
)
def test_the_cache_lies_where_the_user_says_else_in_the_users_cache(
    variables: dict[str, str], system: str, expected: str
) -> None:
    assert cache_folder(variables, Path("/home/me"), system) == Path(expected)


def test_a_relative_cache_counts_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cache_folder({"KERNELPROOF_CACHE": "c"}, Path("/home/me"), "linux") == tmp_path / "c"


def test_a_torch_without_metadata_states_its_version_in_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError\n", encoding="utf-8")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.10.0a0+git1'\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert facts.torch_version() == "2.10.0a0+git1"


def test_no_torch_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert facts.torch_version() is None
