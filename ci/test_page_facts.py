"""What a page reads: stored runs and the kill matrix, in good order and in bad."""

import json
from pathlib import Path

import pytest

from ci import fakes
from ci.page_facts import Kills, Missing, devices, history, read_kills, read_run, read_runs
from ci.report import ReportError


def test_a_timing_has_its_row_and_its_peers_as_fractions_of_a_copy() -> None:
    text = json.dumps(fakes.stored_run(fakes.timing("8x1000x3", "bfloat16", 0.5, eager=0.25, compile=0.4)))
    (timing,) = read_run(text, "0001_x").timings
    assert (timing.candidate, timing.device, timing.row_bytes) == ("l1_norm", "NVIDIA H100 80GB HBM3", 2000)
    assert timing.case == "8x1000x3 bfloat16"
    assert dict(timing.peers) == pytest.approx({"eager": 0.25, "torch.compile": 0.4})


def test_a_layout_is_part_of_the_case() -> None:
    document = fakes.timing()
    assert isinstance(document["extra_info"], dict)
    document["extra_info"]["layout"] = "order1.0"
    document["params"] = {"race": "my-kernel-cuda-4096x4096-float32-order1.0"}
    (timing,) = read_run(json.dumps(fakes.stored_run(document)), "0001_x").timings
    assert (timing.candidate, timing.case) == ("my-kernel", "4096x4096 float32 order1.0")


def test_a_time_on_a_cpu_belongs_to_the_processor() -> None:
    run = read_run(json.dumps(fakes.stored_run(fakes.timing(), fakes.timing(target_name="cpu"))), "0001_x")
    assert devices([run]) == ["NVIDIA H100 80GB HBM3", "A Processor"]
    assert [len(seen) for seen in history([run], "A Processor").values()] == [1]


def test_benchmarks_of_others_are_passed_over() -> None:
    other: dict[str, object] = {"name": "test_other", "params": None, "extra_info": {}}
    assert read_run(json.dumps(fakes.stored_run(other)), "0001_x").timings == ()


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("of_copy", 0, "of_copy is no positive number"),
        ("seconds", float("inf"), "seconds is no positive number"),
        ("gb_per_s", True, "gb_per_s is no positive number"),
        ("dtype", "float8", "known here: 4096x4096 float8"),
        ("shape", "4096", "known here: 4096 float32"),
    ],
)
def test_a_run_that_makes_no_sense_is_an_error_that_names_the_field(field: str, value: object, complaint: str) -> None:
    document = fakes.timing()
    assert isinstance(document["extra_info"], dict)
    document["extra_info"][field] = value
    with pytest.raises(ReportError, match=complaint):
        read_run(json.dumps(fakes.stored_run(document)), "0001_x")


def test_runs_are_read_oldest_first_and_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, day in (("0001_new", 9), ("0002_old", 3)):
        (tmp_path / f"{name}.json").write_text(json.dumps(fakes.stored_run(fakes.timing(), day=day)), encoding="utf-8")
    (tmp_path / "0003_broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "0004_other.json").write_text("[]", encoding="utf-8")
    runs, missing = read_runs(tmp_path)
    assert [run.name for run in runs] == ["0002_old", "0001_new"]
    assert len(missing) == 2
    assert all("cannot be read" in each.why for each in missing)


def test_a_folder_that_is_not_there_is_missing(tmp_path: Path) -> None:
    runs, missing = read_runs(tmp_path / "nowhere")
    assert not runs
    assert "--only=benchmark" in missing[0].why


def test_the_kill_matrix_is_read_without_its_markup(tmp_path: Path) -> None:
    path = tmp_path / "kills.md"
    text = (
        "# Head\n\n`130` *mutants* of 2*3*4\n\n| a | b |\n|:--|--:|\n| [zeros](mutants/zeros.py) | **survives** |\n\n"
    )
    path.write_text(text + "## Alone\n| c |\n|---|\n| \\|x\\| - |\n\nend", encoding="utf-8")
    tables = (("Head", (("a", "b"), ("zeros", "survives"))), ("Alone", (("c",), ("|x| -",))))
    assert read_kills(path) == Kills(("130 mutants of 2*3*4", "end"), tables)


def test_what_is_no_kill_matrix_is_missing(tmp_path: Path) -> None:
    (tmp_path / "k.md").write_text("no table\n", encoding="utf-8")
    assert isinstance(read_kills(tmp_path / "k.md"), Missing)
