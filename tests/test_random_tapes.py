"""What TensorFlow's tape takes through a module is the gradient of JAX, for each family of operations and each operand.

A fixed few are tried always; a third of `RANDOM_PROGRAMS` of each family, others each time, in the session
`random_families`.
"""

import jax
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from .drawing import drawn
from .families import FAMILIES
from .families.documented import is_documented
from .families.tape import compare_by_tape
from .families.trial import NotACase, Trial

BACKENDS = ("eager", "graph", "compiled", "eager+xla", "graph+xla", "compiled+xla")
# Of functions that not every number has: the numbers of `terms` are in the domains of most.
ELEMENTWISE = ("floats", "composed", "chained", "fused", "complexes")


@pytest.fixture(autouse=True)
def _without_compiled_programs():
    yield
    jax.clear_caches()


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"arithmetic"}))  # compared with NumPy, not with JAX
def test_a_tape_takes_the_gradient_of_jax(family):
    @given(st.data())
    @drawn(2, 500, 3)
    def runs(data):
        case = data.draw(FAMILIES[family](), label="case")
        assume(case.reference is None)
        assume("real product of complex" not in case.tags)  # of which JAX's gradient lacks the imaginary part
        x64 = case.needs_x64 or data.draw(st.booleans(), label="x64")
        trial = Trial(data.draw(st.sampled_from(BACKENDS), label="backend"), "vjp", x64, data.draw(st.integers(0, 99)))
        try:
            compare_by_tape(case, trial, numbers="terms" if family in ELEMENTWISE else "normal")
        except NotACase:
            assume(False)
        except AssertionError as error:
            if not is_documented(family, case, trial, error):
                raise

    runs()
