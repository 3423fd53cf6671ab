"""What PyTorch does around a call must not be broken in silence."""

from . import frameworks
from .testing import holds

test_a_gradient_is_right_or_refused = holds(frameworks.AUTOGRAD)
test_autocast_changes_nothing = holds(frameworks.AUTOCAST)
test_compilation_changes_nothing = holds(frameworks.COMPILE)
test_what_the_caller_has_set_changes_nothing = holds(frameworks.SETTING)
