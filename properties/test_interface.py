"""What is refused, and how."""

from . import interface
from .testing import holds

test_what_cannot_be_normalised_is_refused = holds(interface.ERRORS)
