"""A candidate beside a stored run: which run, of whom, and through the copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..targets import machine
from .gates import SLOW, MakeGate, measured, reasons


def stored(folder: Path, gpu: str | None = None, rounds: tuple[float, ...] = (0.5,) * 31, **facts: object) -> None:
    """A stored run, number 1, of one case of the candidate."""
    ours = {"gpu": gpu, "driver": None, "processor": machine().processor, "torch": machine().torch, "cuda": None}
    figures: dict[str, object] = {"target": "cpu", "shape": "256x8192", "dtype": "float32", "layout": "contiguous"}
    figures |= {"of_copy_rounds": rounds, **facts}
    timed = {"name": "test_time_of_a_call[candidate-cpu-256x8192-float32]", "extra_info": figures}
    other = {
        "name": "test_time_of_a_call[another-cpu-256x8192-float32]",
        "extra_info": figures | {"of_copy_rounds": [9]},
    }
    run = {"machine_info": {"kernelproof": ours}, "benchmarks": [other, timed, other]}
    (folder / "Linux-64bit").mkdir()
    (folder / "Linux-64bit" / "0001_today.json").write_text(json.dumps(run), encoding="utf-8")


def test_a_stored_run_is_found_by_number_and_compared_through_the_copy(make_gate: MakeGate, tmp_path: Path) -> None:
    # Beside other jobs a copy may take several times its time: of nine copies' speed that is far below, too.
    stored(tmp_path, rounds=(9.0, 9.1, 8.9) * 7)
    made = make_gate(SLOW, None, stored="0001")
    assert made._stored == {"256x8192-float32": [9.0, 9.1, 8.9] * 7}, "the candidate's own figures"
    found = measured(made)
    assert (found.comparison, found.base.label, found.base.digest) == ("stored", "stored run 0001", "")
    assert (found.verdict, found.exit_code) == ("slower", 1), "eager six times over is far below nine copies"


def test_a_stored_run_of_another_gpu_is_refused(make_gate: MakeGate, tmp_path: Path) -> None:
    stored(tmp_path, gpu="NVIDIA H200")
    found = measured(make_gate(base=None, stored="0001"))
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "another-gpu"}, 69)
    assert "measured on another GPU (NVIDIA H200) than this machine's (none)" in found.cases[0].text


@pytest.mark.parametrize("number", ["0002", "nobody"])
def test_a_stored_run_that_is_not_there_is_no_baseline(make_gate: MakeGate, tmp_path: Path, number: str) -> None:
    stored(tmp_path)
    found = measured(make_gate(base=None, stored=number))
    assert (reasons(found), found.exit_code) == ({"256x8192-float32": "no-baseline"}, 69)
    assert found.cases[0].text.startswith(f"no stored run {number} in {tmp_path}; store one with --benchmark-save=NAME")


def test_a_stored_run_without_the_case_is_no_baseline_for_it(make_gate: MakeGate, tmp_path: Path) -> None:
    stored(tmp_path, shape="9x9")
    found = measured(make_gate(base=None, stored="0001"))
    assert reasons(found) == {"256x8192-float32": "no-baseline"}
    (tmp_path / "Linux-64bit" / "0001_today.json").write_text("[]", encoding="utf-8")
    found = measured(make_gate(base=None, stored="0001"))
    assert "cannot be read" in found.cases[0].text
