"""What is alike shares a line, what is not has one of its own, and nothing is left out."""

from ci import wording


def test_what_is_not_run_for_one_reason_is_one_line() -> None:
    left = [("cuda", "no GPU"), ("huge of k on cpu, shape=1x2", "needs 9 GiB"), ("helper.py", "no GPU")]
    assert wording.not_run(left) == [
        "not run: cuda, helper.py: no GPU",
        "not run: huge of k on cpu, shape=1x2: needs 9 GiB",
    ]


def test_properties_that_were_not_examined_share_a_line_across_candidates() -> None:
    left = [(prop, name, "cpu", "cuda only") for name in ("k", "l", "m") for prop in ("huge", "graph")]
    left += [("devices", "m", "cpu", "cuda only"), ("devices", "m", "cuda", "needs a second GPU")]
    assert wording.not_examined(left) == [
        "not-examined: huge, graph of k, l on cpu: cuda only",
        "not-examined: huge, graph, devices of m on cpu: cuda only",
        "not-examined: devices of m on cuda: needs a second GPU",
    ]


def test_of_many_the_number_is_given() -> None:
    left = [(f"p{number}", "k", "cpu", "it hung") for number in range(13)]
    assert wording.not_examined(left) == ["not-examined: 13 properties of k on cpu: it hung"]


def test_a_fault_that_is_only_told_is_told_once_and_not_again_where_it_rejects() -> None:
    told = [
        ("threads", "wrong (seen at 5x301)", "threads:shape=1x2", "verify --case=threads:shape=1x2"),
        ("autograd", "no gradient", "", "verify"),
        ("compile", "wrong (seen at 5x7)", "compile:shape=1x3", "verify --case=compile:shape=1x3"),
    ]
    assert wording.not_kept(told, "") == [
        "not required, and not kept: threads, compile: wrong (seen at 5x301)",
        "  smallest case: threads:shape=1x2",
        "  replay: verify --case=threads:shape=1x2",
        "not required, and not kept: autograd: no gradient",
    ]
    again = wording.not_kept(told, "wrong")
    assert again[0] == "not required, and not kept: threads, compile: the fault that it is rejected for"
    assert len(again) == 2


def test_what_is_only_told_is_called_so_wherever_it_is_shown() -> None:
    assert [wording.outcome(word) for word in ("reported", "passed", "failed")] == ["told", "passed", "failed"]


def test_what_is_refused_in_the_same_words_is_one_line() -> None:
    refused = {"fp16": "TypeError: no", "strided": "ValueError: no", "fp64": "TypeError: no"}
    assert wording.not_supported(refused.items()) == [
        "not supported: fp16, fp64: TypeError: no",
        "not supported: strided: ValueError: no",
    ]


def test_what_was_noticed_is_counted_over_all_properties() -> None:
    assert wording.noticed([("other bits", 1), ("rounded", 2), ("rounded", 3)]) == [
        "noticed: rounded (5 cases)",
        "noticed: other bits (1 case)",
    ]
