"""On a GPU: streams, other cards, and memory to the byte."""

from . import catalogue
from .testing import holds

test_what_is_queued_ahead_is_waited_for = holds(catalogue.LATE)
test_the_current_stream_does_the_work = holds(catalogue.STREAM)
test_a_second_gpu_gives_its_own_results = holds(catalogue.DEVICES)
test_no_byte_outside_is_touched = holds(catalogue.MEMCHECK)
