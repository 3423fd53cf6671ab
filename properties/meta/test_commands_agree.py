"""`ci/verify` is made of the standard library alone and cannot ask the suite: what both say must be the same."""

import pytest

from ci.options import verify_parser
from properties import profiles
from properties.limits import Limits
from properties.options import OPTIONS
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
