"""What a call does to memory that is not its result."""

from . import footprint
from .testing import holds

test_the_input_is_only_ever_read = holds(footprint.READ_ONLY)
test_memory_does_not_grow_with_the_number_of_calls = holds(footprint.LEAK)
