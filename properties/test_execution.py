"""On a GPU: streams, other cards, and memory to the byte."""

from . import execution
from .testing import holds

test_what_is_queued_ahead_is_waited_for = holds(execution.LATE)
test_the_current_stream_does_the_work = holds(execution.STREAM)
test_a_second_gpu_gives_its_own_results = holds(execution.DEVICES)
test_no_byte_outside_is_touched = holds(execution.MEMCHECK)
