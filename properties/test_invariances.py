"""What the function keeps when its input changes: scale, sign, neighbours. No expected value is needed here."""

from . import invariances
from .testing import holds

test_powers_of_two_change_no_bit = holds(invariances.SCALE_TWO)
test_any_other_factor_gives_the_result_of_the_scaled_input = holds(invariances.SCALE_ANY)
test_negating_the_input_negates_the_result = holds(invariances.ODD)
test_rows_that_change_places_take_their_results_along = holds(invariances.ROW_ORDER)
test_columns_that_change_places_take_their_results_along = holds(invariances.COLUMN_ORDER)
test_a_result_is_its_own_result = holds(invariances.IDEMPOTENT)
test_the_sizes_of_results_add_up_to_columns = holds(invariances.TOTAL)
test_rows_never_reach_each_other = holds(invariances.ISOLATED)
