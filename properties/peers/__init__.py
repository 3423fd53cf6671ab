"""Models that a candidate is timed beside; each is loaded in a worker of its own, as a candidate is."""
