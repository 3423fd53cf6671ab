"""Tests of the suite's own steps."""
