"""The kill matrix in small, on every test run: one mutant a kind of finding, and what the matrix itself promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from .. import catalogue, kill_matrix
from ..cases import parse
from ..examination import Examination
from ..findings import Finding, Kind
from ..kill_matrix import Kill, Specimen, Trial
from ..plugin import run_of
from ..session import Session
from ..targets import machine

#: By the kind that is looked for. Kinds that only a promise brings are not among them.
ONE_A_KIND = {
    "wrong-value": "sum_for_mean",
    "wrong-special": "skips_zero_rows",
    "not-written": "multiple_of_256_only",
    "input-modified": "in_place",
    "aliased-output": "reused_output",
    "stale-result": "cached_by_address",
    "out-of-bounds": "cpp_overread",
    "wrong-shape": "returns_mean",
    "wrong-dtype": "float32_result",
    "wrong-type": "returns_tuple",
    "nondeterministic": "random_noise",
    "state-leak": "wrong_from_50th_call",
    "crash": "aborts",
    "timeout": "import_sleeps",
    "does-not-build": "cpp_does_not_compile",
    "unsupported": "raises_system_exit",
}
#: The same on a GPU, for kinds that come about otherwise there.
ONE_A_KIND_ON_CUDA = {
    "wrong-value": "cuda_partial_warp_dropped",
    "not-written": "cuda_missing_tail",
    "out-of-bounds": "cuda_null_tail",
    "crash": "cuda_device_assert",
    "timeout": "generated_1_mended",
    "aliased-output": "cuda_output_in_workspace",
}


def specimen(name: str, folder: str = "mutants") -> Specimen:
    return kill_matrix.read(kill_matrix.FOLDER / folder / f"{name}.py")


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    made = Session(run_of(request.config).options, machine(), kill_matrix.SEED)
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "name"), ONE_A_KIND.items(), ids=ONE_A_KIND)
def test_a_mutant_of_each_kind_is_killed(kind: str, name: str, session: Session) -> None:
    kill = kill_matrix.judge(session, Trial(specimen(name), "cpu"))
    assert not kill_matrix.complaint(kill), kill.findings
    assert kill.findings[0].kind == kind


@pytest.mark.gpu
@pytest.mark.skipif(bool(machine().no_gpu), reason=machine().no_gpu)
@pytest.mark.parametrize(("kind", "name"), ONE_A_KIND_ON_CUDA.items(), ids=ONE_A_KIND_ON_CUDA)
def test_a_cuda_mutant_of_each_kind_is_killed(kind: str, name: str, session: Session) -> None:
    kill = kill_matrix.judge(session, Trial(specimen(name), "cuda"))
    assert not kill_matrix.complaint(kill), kill.findings
    assert kill.findings[0].kind == kind


def test_a_survivor_is_complained_about() -> None:
    kill = Kill(Trial(specimen("eager", "honest"), "cpu"), "", (), None, ())
    assert kill_matrix.complaint(kill).startswith("eager-cpu survives")


def test_what_is_found_without_the_words_that_must_be_said_is_complained_about() -> None:
    mutant = replace(specimen("sum_for_mean"), words="the sum was used where the mean belongs")
    said = Finding(Kind.WRONG_VALUE, "5 elements are wrong")
    assert "without the words" in kill_matrix.complaint(Kill(Trial(mutant, "cpu"), "shapes", (said,), None, ()))
    said = Finding(Kind.WRONG_VALUE, "by exactly the factor 301: the sum was used where the mean belongs")
    assert not kill_matrix.complaint(Kill(Trial(mutant, "cpu"), "shapes", (said,), None, ()))


# ---- Where a specimen runs ------------------------------------------------------------------------------------------

NO_GPU = "no CUDA device is visible"


def where(name: str, targets: tuple[str, ...], no_gpu: str) -> list[tuple[str, str]]:
    return [(trial.target, trial.missing) for trial in kill_matrix.trials([specimen(name)], targets, no_gpu)]


def test_a_specimen_runs_on_every_target_that_is_asked_for_and_here() -> None:
    assert where("sum_for_mean", ("cpu", "cuda"), "") == [("cpu", ""), ("cuda", "")]
    assert where("sum_for_mean", ("cpu", "cuda"), NO_GPU) == [("cpu", "")]
    assert where("sum_for_mean", ("cuda",), "") == [("cuda", "")]
    assert where("cpp_overread", ("cpu", "cuda"), "") == [("cpu", "")]
    assert where("cpp_overread", ("cuda",), "") == []


def test_a_specimen_without_a_target_here_says_what_is_missing() -> None:
    assert where("cuda_missing_tail", ("cpu", "cuda"), NO_GPU) == [("cuda", NO_GPU)]
    assert where("sum_for_mean", ("cuda",), NO_GPU) == [("cuda", NO_GPU)]


def test_a_specimen_that_needs_a_module_says_if_it_is_missing() -> None:
    needy = replace(specimen("sum_for_mean"), needs=("a_module_of_no_name",))
    trials = kill_matrix.trials([needy], ("cpu",), NO_GPU)
    assert [trial.missing for trial in trials] == ["a_module_of_no_name is not installed"]


def properties_of(name: str, folder: str = "mutants") -> list[str]:
    return [prop.name for prop in kill_matrix.order(Trial(specimen(name, folder), "cuda"))]


def test_dear_properties_are_left_to_those_that_name_them() -> None:
    assert not {"huge", "memcheck"} & {*properties_of("sum_for_mean"), *properties_of("eager", "honest")}
    assert properties_of("cuda_int_offset")[0] == "huge"


def test_honest_kernels_are_judged_under_the_sanitizer() -> None:
    assert ("memcheck" in properties_of("cuda_warp_per_row", "honest")) == ("memcheck" in catalogue.CATALOGUE)


def test_a_killer_that_could_not_be_asked_is_not_taken_for_survival() -> None:
    seen = Examination(catalogue.CATALOGUE["huge"], not_run={"shape=2x3": "needs 17.2 GiB, have 2.0 GiB"})
    kill = Kill(Trial(specimen("cuda_int_offset"), "cuda"), "", (), None, (seen,))
    assert kill_matrix.not_run(kill) == "needs 17.2 GiB, have 2.0 GiB"
    assert kill_matrix.not_run(replace(kill, findings=(Finding(Kind.CRASH, "ends"),))) == ""
    assert kill_matrix.not_run(replace(kill, trial=Trial(specimen("sum_for_mean"), "cuda"))) == ""


def test_a_case_that_passes_in_a_fresh_process_is_complained_about(session: Session) -> None:
    kill = kill_matrix.judge(session, Trial(specimen("sum_for_mean"), "cpu"))
    assert kill.again
    assert not kill_matrix.complaint(kill)
    assert "passes or fails otherwise" in kill_matrix.complaint(replace(kill, again=()))
    once = kill_matrix.judge(session, Trial(replace(specimen("sum_for_mean"), replays=False), "cpu"))
    assert once.again is None


def test_only_the_named_case_is_looked_at(session: Session) -> None:
    mutant = replace(specimen("sum_for_mean"), killer="shapes", case=parse("shape=2x1000"))
    kill = kill_matrix.judge(session, Trial(mutant, "cpu"))
    assert kill.case == mutant.case
    assert [each.examples for each in kill.examinations] == [1]


def test_what_hangs_comes_last() -> None:
    hangs = [Kind.TIMEOUT in each.kinds for each in kill_matrix.specimens("mutants")]
    assert hangs == sorted(hangs)


# ---- What a docstring may say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("Target: gpu", "not one of any, cpu, cuda"),
        ("Found as: wrong", "wrong"),
        ("Promises: speed", "not one of"),
        ("Case: shape=1x2", "names the property"),
        ("Smallest case: many", "number of elements"),
    ],
)
def test_a_docstring_that_says_what_it_may_not_is_refused(line: str, complaint: str, tmp_path: Path) -> None:
    given = {"Seen": "here", "Target": "any", "Found as": "crash"}
    name, _, value = line.partition(": ")
    path = tmp_path / "mutant.py"
    path.write_text('"""A fault.\n\n' + "".join(f"{k}: {v}\n" for k, v in {**given, name: value}.items()) + '"""\n')
    with pytest.raises(ValueError, match=complaint):
        kill_matrix.read(path)


def test_a_mutant_must_say_where_it_can_run(tmp_path: Path) -> None:
    path = tmp_path / "mutant.py"
    path.write_text('"""A fault.\n\nSeen: here\nFound as: crash\n"""\n')
    with pytest.raises(ValueError, match="Target"):
        kill_matrix.read(path)
