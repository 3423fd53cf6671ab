"""What came before a call must not matter, and what comes after must not change its result."""

from . import catalogue
from .testing import holds

test_old_addresses_new_data_and_kept_results = holds(catalogue.HISTORY)
test_the_same_call_gives_the_same_bits = holds(catalogue.REPEATED)
