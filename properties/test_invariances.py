"""What the function keeps when its input changes: scale, sign, neighbours. No expected value is needed here."""

from . import catalogue
from .testing import holds

test_powers_of_two_change_no_bit = holds(catalogue.SCALE_TWO)
test_any_other_factor_gives_the_result_of_the_scaled_input = holds(catalogue.SCALE_ANY)
test_negating_the_input_negates_the_result = holds(catalogue.ODD)
test_rows_that_change_places_take_their_results_along = holds(catalogue.ROW_ORDER)
test_columns_that_change_places_take_their_results_along = holds(catalogue.COLUMN_ORDER)
test_a_result_is_its_own_result = holds(catalogue.IDEMPOTENT)
test_the_sizes_of_results_add_up_to_columns = holds(catalogue.TOTAL)
test_rows_never_reach_each_other = holds(catalogue.ISOLATED)
