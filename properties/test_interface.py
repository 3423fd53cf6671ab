"""What is refused, and how."""

from . import catalogue
from .testing import holds

test_what_cannot_be_normalised_is_refused = holds(catalogue.ERRORS)
