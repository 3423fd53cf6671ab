"""A model is made, copied and moved as any module of torch's is."""

from . import lifecycle
from .testing import holds

test_every_instance_is_as_good_as_the_first = holds(lifecycle.INSTANCES)
test_a_program_ends_by_itself = holds(lifecycle.END)
test_a_plain_program_gets_the_same = holds(lifecycle.HOME)
