"""Streams, graphs, threads, other cards, and memory to the byte."""

from . import concurrency, execution, graphs
from .testing import holds

test_what_is_queued_ahead_is_waited_for = holds(execution.LATE)
test_the_current_stream_does_the_work = holds(execution.STREAM)
test_a_second_gpu_gives_its_own_results = holds(execution.DEVICES)
test_no_byte_outside_is_touched = holds(execution.MEMCHECK)
test_a_captured_call_can_be_replayed_on_new_data = holds(graphs.GRAPH)
test_two_threads_do_not_disturb_each_other = holds(concurrency.THREADS)
