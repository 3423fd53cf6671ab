"""What came before a call must not matter, and what comes after must not change its result."""

from . import histories
from .testing import holds

test_old_addresses_new_data_and_kept_results = holds(histories.HISTORY)
test_any_sequence_of_calls_gives_right_results = holds(histories.SEQUENCE)
test_the_same_call_gives_the_same_bits = holds(histories.REPEATED)
test_the_next_call_is_right_after_however_many = holds(histories.MANY_CALLS)
test_an_earlier_input_is_left_alone = holds(histories.EARLIER_INPUT)
