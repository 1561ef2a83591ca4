"""What needs JAX says so where there is none."""

import subprocess
import sys

import pytest

WITHOUT_JAX = "import sys; sys.modules['jax'] = None\n"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("a + 1.5", "the value of 'a' as an array needs JAX; install jaxtf-shapepoly[jax]"),
        ("a / 2", "the value of 'a' as an array needs JAX; install jaxtf-shapepoly[jax]"),
        ("symbolic_args_specs((1,), '...')", "symbolic_args_specs needs JAX; install jaxtf-shapepoly[jax]"),
    ],
)
def test_an_operation_that_needs_jax_says_so(program, message):
    lines = [WITHOUT_JAX, "from jaxtf.shapepoly import *", "a, = symbolic_shape('a')", program]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == f"jaxtf.shapepoly._errors.JaxRequiredError: {message}"
