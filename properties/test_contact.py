"""First of all: does the candidate load, build and answer?"""

from .session import CONTACT
from .testing import holds

test_it_loads_builds_and_answers = holds(CONTACT)
