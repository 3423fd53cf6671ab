"""From facts to a plan: whose torch, which build, which folder."""

from dataclasses import replace

import pytest

from ci.environment import judge_resolution
from ci.facts import Caller
from ci.installer import Installed
from ci.plan import cpu_torch_candidates, distribution, make_plan

NEEDS = ("torch>=2.9", "numpy>=1.26")
BARE = Caller("/v/bin/python", "/v", "/usr/bin/python3.12", "3.12.3", None, ("/v/site-packages",), "/v/bin")
WITH_TORCH = replace(BARE, torch="2.11.0+cu130")


def test_a_recent_torch_is_inherited_pinned_and_not_asked_for() -> None:
    plan = make_plan(WITH_TORCH, gpu=False, system="linux", dependencies=NEEDS)
    assert plan.inherits
    assert plan.requirements == ("numpy>=1.26",)
    assert plan.constraints == ("torch==2.11.0+cu130",)
    assert not plan.find_cpu_torch


@pytest.mark.parametrize("torch", [None, "2.8.0"])
def test_without_a_recent_torch_the_environment_has_its_own(torch: str | None) -> None:
    plan = make_plan(replace(BARE, torch=torch), gpu=True, system="linux", dependencies=NEEDS)
    assert not plan.inherits
    assert plan.requirements == NEEDS
    assert plan.constraints == ()


@pytest.mark.parametrize(
    ("gpu", "system", "looked_for"), [(False, "linux", True), (True, "linux", False), (False, "darwin", False)]
)
def test_a_cpu_build_is_looked_for_on_linux_without_a_gpu(gpu: bool, system: str, looked_for: bool) -> None:
    assert make_plan(BARE, gpu=gpu, system=system, dependencies=NEEDS).find_cpu_torch is looked_for


def test_what_matters_changes_the_folder_and_nothing_else_does() -> None:
    def key(caller: Caller, gpu: bool = False, needs: tuple[str, ...] = NEEDS) -> str:
        return make_plan(caller, gpu=gpu, system="linux", dependencies=needs).key

    same = {key(BARE), key(replace(BARE, prefix="/w", scripts="/w/bin")), key(BARE, needs=NEEDS[::-1])}
    assert len(same) == 1
    assert key(WITH_TORCH) == key(WITH_TORCH, gpu=True)
    different = [
        key(BARE),
        key(BARE, gpu=True),
        key(BARE, needs=(*NEEDS, "rich")),
        key(replace(BARE, version="3.12.4")),
        key(replace(BARE, base="/opt/python3.12")),
        key(WITH_TORCH),
        key(replace(WITH_TORCH, torch="2.12.0")),
        key(replace(WITH_TORCH, prefix="/w")),
        key(replace(WITH_TORCH, site_folders=("/v/site-packages", "/u"))),
    ]
    assert len(set(different)) == len(different)


def test_the_folder_has_no_blank_and_no_separator_in_its_name() -> None:
    key = make_plan(replace(WITH_TORCH, torch="2.9 odd/name"), gpu=False, system="linux", dependencies=NEEDS).key
    assert not set(key) & set(" /")


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("torch>=2.9", "torch"), ("pytest-xdist[a]~=3", "pytest-xdist"), ("Nvidia_ML.py ; x", "nvidia-ml-py")],
)
def test_a_requirement_begins_with_its_distribution(requirement: str, name: str) -> None:
    assert distribution(requirement) == name


def test_versions_labelled_cpu_come_first_then_the_default_then_the_known_one() -> None:
    on_offer = ["2.15.0", "2.14.0+cpu", "2.13.0+cpu", "2.13.0", "2.12.0+cpu", "2.11.0+cpu", "2.8.0+cpu"]
    assert cpu_torch_candidates(on_offer, "x86_64", "torch>=2.9") == (
        "torch==2.14.0+cpu",
        "torch==2.13.0+cpu",
        "torch==2.12.0+cpu",
        "torch>=2.9",
        "torch==2.13.0",
    )


def test_an_old_cpu_build_is_no_candidate_and_an_unknown_machine_has_no_known_one() -> None:
    assert cpu_torch_candidates(["2.8.0+cpu"], "riscv64", "torch>=2.9") == ("torch>=2.9",)


def test_a_resolution_without_accelerator_packages_is_pinned_exactly() -> None:
    resolved = (Installed("numpy", "2.0"), Installed("torch", "2.13.0+cpu"))
    assert judge_resolution("torch==2.13.0", resolved) == ("torch==2.13.0+cpu", "")


@pytest.mark.parametrize(
    ("resolved", "reason"),
    [
        ((Installed("torch", "2.14.1"), Installed("nvidia-cudnn-cu13", "9.2")), "several GB"),
        ("the disk is full", "torch>=2.9: the disk is full"),
        ((Installed("numpy", "2.0"),), "no torch"),
    ],
)
def test_a_resolution_that_will_not_do_has_a_reason(resolved: tuple[Installed, ...] | str, reason: str) -> None:
    chosen, why = judge_resolution("torch>=2.9", resolved)
    assert chosen is None
    assert reason in why
