"""`ci/verify` is made of the standard library alone and cannot ask the suite, nor can a text: all say the same."""

import re

import pytest

from ci.options import verify_parser
from properties import interface, profiles
from properties.limits import Limits
from properties.options import OPTIONS, ROOT
from properties.subject import REQUIRABLE

#: Options of pytest alone: what they are for is not the main job.
PYTEST_ONLY = {"--peers"}


@pytest.mark.parametrize("flag", sorted({option.flag for option in OPTIONS} - PYTEST_ONLY))
def test_verify_takes_every_option_of_the_suite(flag: str) -> None:
    assert flag in verify_parser().format_help()


def test_verify_names_all_that_can_be_required_and_nothing_else() -> None:
    (action,) = (action for action in verify_parser()._actions if "--require" in action.option_strings)
    assert action.help is not None
    assert action.help.partition(": ")[2].split(", ") == list(REQUIRABLE)[1:]


def test_verify_names_every_profile_and_its_examples_and_the_limits() -> None:
    said = {text: action.help or "" for action in verify_parser()._actions for text in action.option_strings}
    assert all(f"{name} ({each.examples}" in said["--profile"] for name, each in profiles.PROFILES.items())
    assert f"(default: {Limits().call:g})" in said["--call-timeout"]
    assert f"(default: {Limits().build:g})" in said["--build-timeout"]


#: A word of the table in the text for each thing that is refused.
IN_THE_TABLE = {
    "vector (rank 1)": "a vector, a number",
    "number (rank 0)": "a vector, a number",
    "matrix": "a matrix of integers",
    "integer vector": "a vector of integers",
    "list": "a list",
    "None": "a list",
    "Python number": "a list",
    "numpy array": "a list",
}


def test_the_documented_exceptions_are_those_that_are_expected() -> None:
    text = (ROOT / "properties" / "README.md").read_text(encoding="utf-8")
    table = text.partition("### The documented exceptions")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", table, re.MULTILINE))
    for refusal in interface.REFUSALS:
        (begins,) = {place for word, place in IN_THE_TABLE.items() if re.search(rf"\b{re.escape(word)}", refusal.name)}
        (said,) = [errors for what, errors in rows.items() if what.startswith(begins)]
        named = set(re.findall(r"`(\w+)`", said))
        if "the row above" in said:
            named |= set(interface._DTYPE_ERRORS)
        assert named == set(refusal.errors), refusal.name
