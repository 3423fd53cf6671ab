"""The suite: draw a case, build its input, run the candidate in a worker, observe, judge, report."""
