"""The build backend that `pip install .` meets: kernelproof runs from a checkout, so it says that and stops.

Its packages have common names (`kernels` belongs to a package on the index), and the kernels are compiled from files of
the checkout: an installed copy would shadow the one and miss the other.
"""

from typing import NoReturn

WORDS = "kernelproof is not installed: it runs from its checkout; call ci/verify there (ci/verify --help)"


def _refuse(*_arguments: object, **_options: object) -> NoReturn:
    raise SystemExit(WORDS)


build_wheel = build_sdist = build_editable = _refuse
get_requires_for_build_wheel = get_requires_for_build_sdist = get_requires_for_build_editable = _refuse
