"""How the input lies in memory must not matter."""

from . import contract
from .testing import holds

test_any_layout_gives_the_result_of_the_contiguous_copy = holds(contract.LAYOUTS)
test_a_negated_view_gives_the_result_of_the_negated_values = holds(contract.NEGATED)
