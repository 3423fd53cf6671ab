"""A folder of builds that cannot be written, or is full, is no candidate's fault; what it says of itself alone is."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from .. import build_place
from ..build_place import NoPlaceError
from ..findings import Kind
from ..runner import Runner
from .conftest import RIGHT, MakeRunner, MakeSubject

#: Writing to this device always fails as a full disk does.
FULL = "open('/dev/full', 'w').write('x' * 100000)"


def refused(number: int, folder: Path) -> OSError:
    return OSError(number, os.strerror(number), str(folder))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EROFS, "is read-only"),
        (errno.ENOSPC, "is full ("),
        (errno.EDQUOT, "is full ("),
    ],
)
def test_a_cache_that_cannot_be_written_leaves_the_candidate_unjudged(
    number: int, said: str, make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = make_subject(RIGHT)

    def folder(self: Runner) -> Path:
        raise refused(number, self.cache)

    monkeypatch.setattr(Runner, "build_folder", folder)
    broken = subject.probe()
    assert broken is not None
    assert broken.kind is Kind.NOT_RUN
    assert "\n" not in broken.text
    for word in (said, str(subject.runner.cache), "set KERNELPROOF_CACHE"):
        assert word in broken.text


def test_a_cache_that_is_a_file_is_told_so(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT)
    subject.runner.cache.write_text("", encoding="utf-8")
    broken = subject.probe()
    assert broken is not None
    assert (broken.kind, "cannot be used" in broken.text) == (Kind.NOT_RUN, True)


@pytest.mark.parametrize(("forward", "head"), [(RIGHT, FULL), (f"{FULL}\n{RIGHT}", "")], ids=["import", "call"])
@pytest.mark.parametrize(("free", "full"), [(3 << 20, True), (1 << 40, False)])
def test_who_says_that_the_disk_is_full_is_believed_where_little_is_free(
    forward: str, head: str, free: int, full: bool, make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_place, "_free", lambda _: free)
    broken = make_subject(forward, head=head).probe()
    assert broken is not None
    assert (broken.kind is Kind.NOT_RUN) == full, broken
    assert ("is full (3.0 MiB free)" in broken.text) == full


def test_a_candidate_that_fails_on_a_disk_with_little_left_fails_by_itself(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_place, "_free", lambda _: 1 << 20)
    for head in ("raise ValueError('x')", "import os\nos.abort()", "import no_such_module"):
        broken = make_subject(RIGHT, head=head).probe()
        assert broken is not None
        assert broken.kind is Kind.DOES_NOT_BUILD


def test_a_process_that_dies_where_nothing_can_be_written_is_not_blamed(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.TemporaryFile

    def no_file(**given: Path) -> object:
        if given:
            raise refused(errno.ENOSPC, given["dir"])
        return made()

    runner = make_runner(RIGHT, head="import os\nos.abort()")
    monkeypatch.setattr(tempfile, "TemporaryFile", no_file)
    with pytest.raises(NoPlaceError, match=r"nothing can be built: the disk of .* is full"):
        runner.load()


def test_the_folder_for_temporary_files_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    (tmp_path / "cache").mkdir()
    assert "set TMPDIR" in build_place.wrong_with((tmp_path / "cache",), believed=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert not build_place.wrong_with((tmp_path / "cache",), believed=False)
