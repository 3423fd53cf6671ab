"""The result's values: every shape, every family of values, specials, and the tiers in which sums are exact."""

from . import contract
from .testing import holds

test_every_shape_gives_the_result_of_the_reference = holds(contract.SHAPES)
test_every_family_of_values_gives_the_result_of_the_reference = holds(contract.VALUES)
test_special_values_follow_the_rules = holds(contract.SPECIALS)
test_the_mean_is_sharp_where_sums_are_exact = holds(contract.EXACT_SUMS)
test_every_bit_is_right_where_nothing_rounds = holds(contract.EVERY_BIT)
test_every_one_of_many_rows_is_right = holds(contract.MANY_ROWS)
test_the_shipped_size_and_beyond_is_right = holds(contract.HUGE)
test_rows_of_a_million_columns_are_right = holds(contract.LONG_ROWS)
