"""The judge: from handmade observations to each kind of finding; nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from .. import inputs, judge
from ..cases import Case, parse
from ..findings import Finding, Kind
from ..inputs import Input
from ..judge import Judgement
from ..l1_norm import L1_NORM
from ..observation import Damage, Death, Observation, Outcome
from ..protocol import OVERWRITTEN_BYTE, ErrorInfo, OutputMeta

GIVEN = inputs.build(parse("shape=3x5,seed=1"))


def right(given: Input) -> torch.Tensor:
    wide = given.logical.double()
    return (wide / wide.abs().mean(1, keepdim=True)).to(given.logical.dtype)


def returned(given: Input = GIVEN, output: torch.Tensor | None = None, **changes: object) -> Observation:
    """What is seen of a right result, with some of it changed."""
    result = right(given) if output is None else output
    like = torch.empty_like(given.storage.as_strided(given.shape, given.geometry.strides, given.geometry.offset))
    spans = (5000, 5000 + max(1000, result.nbytes)), (1000, 2000)
    meta = OutputMeta("torch.Tensor", True, given.shape, given.dtype, "cpu", like.stride(), "strided", False, *spans)
    return Observation(Outcome.RETURNED, meta=replace(meta, **changes), output=result)  # type: ignore[arg-type]


def judged(seen: Observation, given: Input = GIVEN, demands: frozenset[str] = frozenset()) -> Judgement:
    return judge.judge(given, seen, L1_NORM, demands)


def only(judgement: Judgement) -> Finding:
    (finding,) = judgement.findings
    return finding


@pytest.mark.parametrize("line", ["shape=3x5,seed=1", "shape=2x3x4,dtype=float16,seed=1", "shape=0x4", "shape=4x0"])
def test_a_right_result_has_no_finding(line: str) -> None:
    given = inputs.build(parse(line))
    said = judged(returned(given), given)
    assert said == Judgement(metrics=said.metrics)


def test_what_a_result_takes_along_is_noticed() -> None:
    assert judged(returned(attributes=("made_from",))).notes == {"the result has attributes of its own: made_from"}
    assert not judged(returned(storage=(5000, 5000 + GIVEN.logical.nbytes + 4096))).notes, "padding"
    (note,) = judged(returned(storage=(5000, 5000 + GIVEN.logical.nbytes + 4097))).notes
    assert note.startswith("the result is a part of a larger tensor")
    large = inputs.build(parse("shape=300x257,seed=1"))
    assert not judged(returned(large, storage=(5000, 5000 + large.logical.nbytes * 3 // 2)), large).notes
    assert judged(returned(large, storage=(5000, 5000 + large.logical.nbytes * 3 // 2 + 1)), large).notes == {note}


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"type": "builtins.list"}, Kind.WRONG_TYPE, "returns builtins.list, expected exactly torch.Tensor"),
        ({"layout": "torch.sparse_coo"}, Kind.WRONG_TYPE, "layout torch.sparse_coo"),
        ({"shape": (5, 3)}, Kind.WRONG_SHAPE, "returns shape [5, 3], expected [3, 5]"),
        ({"dtype": "float64"}, Kind.WRONG_DTYPE, "returns float64, expected float32"),
        ({"pending": "CUDA error: x"}, Kind.PENDING_ERROR, "leaves an error of the GPU behind"),
        ({"current": 1}, Kind.STATE_LEAK, "leaves cuda:1 as the current device"),
        ({"device": "meta"}, Kind.WRONG_DEVICE, "returns a tensor on meta, expected cpu"),
        ({"storage": (1999, 2400)}, Kind.ALIASED_OUTPUT, "shares memory with the input"),
        ({"storage": (500, 1001)}, Kind.ALIASED_OUTPUT, "shares memory with the input"),
        ({"storage": (5000, 5020)}, Kind.ALIASED_OUTPUT, "elements of the result share memory: 20 bytes hold 60"),
        ({"negated": True}, Kind.WRONG_TYPE, "a lazily negated view"),
        (
            {"altered": ("shape [3, 5] -> [5, 3]",)},
            Kind.INPUT_MODIFIED,
            "caller's tensor object: shape [3, 5] -> [5, 3]",
        ),
        ({"written": True}, Kind.INPUT_MODIFIED, "works in place on its input"),
        ({"left": ("rounding: to nearest -> up",)}, Kind.STATE_LEAK, "for whoever comes next: rounding"),
    ],
)
def test_what_a_result_looks_like_is_judged(changes: dict[str, object], kind: Kind, words: str) -> None:
    finding = only(judged(returned(**changes)))  # type: ignore[arg-type]
    assert finding.kind is kind
    assert words in finding.text


@pytest.mark.parametrize("storage", [(2000, 2400), (500, 1000)])
def test_neighbouring_memory_is_not_shared(storage: tuple[int, int]) -> None:
    assert not judged(returned(storage=storage)).findings


@pytest.mark.parametrize("changes", [{"storage": (0, 4000)}, {"negated": True}, {"written": True}])
def test_what_has_no_elements_shares_and_changes_nothing(changes: dict[str, object]) -> None:
    empty = inputs.build(parse("shape=0x5,layout=offset3"))
    assert not judged(returned(empty, **changes), empty).findings  # type: ignore[arg-type]


def test_damage_is_told_whatever_came_back() -> None:
    damage = Damage(2, 6, 4)
    for seen in (returned(), Observation(Outcome.RAISED, error=ErrorInfo("ValueError", (), "no"))):
        kinds = [finding.kind for finding in judged(replace(seen, damage=damage)).findings]
        assert kinds == [Kind.INPUT_MODIFIED, Kind.OUT_OF_BOUNDS]
    text = judged(replace(returned(), damage=damage)).findings[0].text
    assert text == "modifies its input: 2 of 15 elements changed, the first at [1, 1]"


def test_a_death_and_a_hang_are_told() -> None:
    death = Death("SIGSEGV", "call", ("some words",))
    crash = only(judged(Observation(Outcome.DIED, death=death)))
    assert (crash.kind, crash.details) == (Kind.CRASH, ("| some words",))
    assert only(judged(Observation(Outcome.TIMED_OUT, death=death))).kind is Kind.TIMEOUT


def test_an_exception_is_no_finding_by_itself() -> None:
    said = judged(Observation(Outcome.RAISED, error=ErrorInfo("ValueError", (), "float32 only", "k.py, line 3")))
    assert not said.findings
    assert said.unsupported == "ValueError: float32 only (k.py, line 3)"
    assert judge.refusal("no", Case((0, 4))).kind is Kind.UNSUPPORTED


def test_a_failed_build_is_told_by_the_compilers_error() -> None:
    text = "Error building extension 'k': [1/2] c++ ...\nk.cpp:5:17: error: 'm' was not declared\nninja: stopped"
    assert str(ErrorInfo("RuntimeError", (), text, building=True)).endswith("k.cpp:5:17: error: 'm' was not declared")
    assert str(ErrorInfo("RuntimeError", (), text)).startswith("RuntimeError: Error building extension")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "backend='b' raised:\nNotSupported: no fake\n\nSet TORCHDYNAMO_VERBOSE=1",
            "backend='b' raised: NotSupported: no fake",
        ),
        ("a worker raised:\nTraceback (most recent call last):\n  File 'k', line 3\n    f()\nKeyError: 3\nmore", None),
        ("in load_state_dict:\n\n\tfor Model:\n\tsize mismatch", "in load_state_dict: for Model: size mismatch"),
        ("nothing follows:", "nothing follows:"),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("two words: and more\nof it", "two words: and more"),
    ],
)
def test_what_a_message_announces_is_told_with_it(text: str, said: str | None) -> None:
    said = said or "a worker raised: KeyError: 3"
    assert str(ErrorInfo("BackendCompilerFailed", (), text)) == f"BackendCompilerFailed: {said}"


IN_TORCHSCRIPT = """The following operation failed in the TorchScript interpreter.
Traceback of TorchScript (most recent call last):
  File "/k.py", line 4, in f
def f(x):
    if x.dim() == 2: raise ValueError("key: value")
                     ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE
    return x
"""


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("RuntimeError: AssertionError: needs 3 dims\n\n", "RuntimeError: AssertionError: needs 3 dims"),
        ("builtins.ValueError: bad\nthing\n", "ValueError: bad"),
        ("it stopped\n", "it stopped"),
        ("", "return x"),
    ],
)
def test_an_error_in_torchscript_is_told_by_what_was_raised(raised: str, said: str) -> None:
    assert str(ErrorInfo("Error", (), f"{IN_TORCHSCRIPT}{raised}")) == f"Error: {said}"


def test_other_strides_are_a_note_or_a_finding() -> None:
    seen = returned(strides=(1, 3))
    assert judged(seen).notes == {"strides of the output are not those of empty_like"}
    assert only(judged(seen, demands=frozenset({"strides"}))).kind is Kind.WRONG_STRIDES
    transposed = inputs.build(parse("shape=3x5,layout=order1.0,seed=1"))
    assert not judged(returned(transposed), transposed).notes


def test_strides_of_dimensions_of_one_do_not_matter() -> None:
    column = inputs.build(parse("shape=3x1,seed=1"))
    assert not judged(returned(column, strides=(1, 77)), column, frozenset({"strides"})).findings


def test_wrong_values_are_told_with_the_worst_elements() -> None:
    output = right(GIVEN)
    output[1, 3] *= 1.5
    finding = only(judged(returned(output=output)))
    assert finding.kind is Kind.WRONG_VALUE
    assert "only column 3 is wrong" in finding.text
    assert "only row 1 of 3 is wrong" in finding.text
    assert finding.details[0].startswith("row 1, column 3: got ")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("byte", judge.UNWRITTEN_BYTES)
def test_unwritten_memory_is_told_from_wrong_values(dtype: str, byte: int) -> None:
    given = inputs.build(parse(f"shape=3x8,dtype={dtype},seed=1"))
    output = right(given)
    output.view(torch.uint8)[:, 5 * output.element_size() :] = byte
    finding = only(judged(returned(given, output), given))
    assert (finding.kind, finding.text) == (
        Kind.NOT_WRITTEN,
        "columns 5 and up are never written, those below are right",
    )
    output[0, 5] = 1.0
    assert only(judged(returned(given, output), given)).kind is Kind.WRONG_VALUE


def test_only_on_a_gpu_may_what_a_caller_wrote_stand_in_memory_that_nobody_wrote() -> None:
    def found(device: str, *fills: int) -> tuple[Kind, str]:
        output = right(GIVEN)
        for column, fill in enumerate(fills):
            output.view(torch.uint8).view(3, 5, 4)[:, column] = fill
        seen = replace(returned(output=output, device=device), device=device)
        finding = only(judged(seen))
        return finding.kind, finding.text

    on_cpu, on_gpu = found("cpu", OVERWRITTEN_BYTE), found("cuda:0", OVERWRITTEN_BYTE)
    assert on_cpu == (Kind.ALIASED_OUTPUT, judge.GIVEN_OUT_AGAIN)
    assert on_gpu == (Kind.ALIASED_OUTPUT, f"{judge.GIVEN_OUT_AGAIN}, or never writes it")
    assert found("cpu", OVERWRITTEN_BYTE, judge.UNWRITTEN_BYTES[0])[0] is Kind.WRONG_VALUE
    assert found("cuda:0", OVERWRITTEN_BYTE, judge.UNWRITTEN_BYTES[0])[0] is Kind.NOT_WRITTEN


def test_a_result_that_asks_for_a_gradient_is_noted() -> None:
    assert "requires_grad" in next(iter(judged(returned(requires_grad=True)).notes))


def test_special_values_have_a_kind_of_their_own() -> None:
    given = inputs.build(parse("shape=1x4,values=zeros"))
    finding = only(judged(returned(given, torch.zeros(1, 4)), given))
    assert (finding.kind, finding.text) == (Kind.WRONG_SPECIAL, "a row of zeros gives 0, expected NaN")


def test_an_inaccurate_mean_is_a_note_or_a_finding() -> None:
    given = inputs.build(parse("shape=1x4096,values=signed,seed=3"))
    wide = given.logical.double()
    output = (wide / (wide.abs().mean(1, keepdim=True) * (1 + 80 * 2.0**-24))).float()
    said = judged(returned(given, output), given)
    assert not said.findings
    assert any(note.startswith("inaccurate: ") for note in said.notes)
    assert only(judged(returned(given, output), given, frozenset({"accuracy"}))).kind is Kind.INACCURATE
