"""Is the machine what the run asked for?"""

import pytest

from .plugin import run_of
from .targets import machine


@pytest.mark.correctness
def test_a_gpu_is_there_where_one_is_required(request: pytest.FixtureRequest) -> None:
    if run_of(request.config).options.require_gpu and not machine().gpu:
        pytest.fail(f"--require-gpu: there is no usable GPU: {machine().no_gpu}", pytrace=False)
